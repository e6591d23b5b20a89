// Unsigned by signed bytes.

// RUN-LEVELS: fails=operands of a product have one type

builtin.module {
  func.func @main(%u: tensor<4x5xui8>, %y: tensor<5x3xi8>) -> tensor<4x3xi32> {
    %0 = graph.matmul %u, %y : (tensor<4x5xui8>, tensor<5x3xi8>) -> tensor<4x3xi32>
    func.return %0 : tensor<4x3xi32>
  }
}
