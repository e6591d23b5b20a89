// Bytes by bytes give exact i32.

// RUN-LEVELS: seed=28

builtin.module {
  func.func @main(%x: tensor<20x50xi8>, %y: tensor<50x18xi8>, %b: tensor<18xi32>) -> tensor<20x18xi32> {
    %0 = graph.matmul %x, %y : (tensor<20x50xi8>, tensor<50x18xi8>) -> tensor<20x18xi32>
    func.return %0 : tensor<20x18xi32>
  }
}
