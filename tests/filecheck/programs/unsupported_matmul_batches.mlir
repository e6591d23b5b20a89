// Batch axes of a product that broadcast.

// RUN-LEVELS: fails=batch axes of a product agree

builtin.module {
  func.func @main(%x: tensor<2x1x8x16xf32>, %y: tensor<3x16x8xf32>) -> tensor<2x3x8x8xf32> {
    %0 = graph.matmul %x, %y : (tensor<2x1x8x16xf32>, tensor<3x16x8xf32>) -> tensor<2x3x8x8xf32>
    func.return %0 : tensor<2x3x8x8xf32>
  }
}
