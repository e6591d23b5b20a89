// Unsigned by signed bytes, and words: exact, modulo 2³².

// RUN-LEVELS: seed=95

builtin.module {
  func.func @main(%u: tensor<2x4x50xui8>, %y: tensor<50x3xi8>, %z: tensor<2x3x50xi8>, %b: tensor<3xi32>, %m: tensor<4x50xi32>, %n: tensor<2x50x3xi32>) -> (tensor<2x4x3xi32>, tensor<2x4x3xi32>, tensor<2x4x3xi32>) {
    %0 = graph.matmul %u, %y, %b : (tensor<2x4x50xui8>, tensor<50x3xi8>, tensor<3xi32>) -> tensor<2x4x3xi32>
    %1 = graph.matmul %u, %z {trans_b = true} : (tensor<2x4x50xui8>, tensor<2x3x50xi8>) -> tensor<2x4x3xi32>
    %2 = graph.matmul %m, %n : (tensor<4x50xi32>, tensor<2x50x3xi32>) -> tensor<2x4x3xi32>
    func.return %0, %1, %2 : tensor<2x4x3xi32>, tensor<2x4x3xi32>, tensor<2x4x3xi32>
  }
}
