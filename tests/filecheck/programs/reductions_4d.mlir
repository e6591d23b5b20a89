// Every second axis is reduced.

// RUN-LEVELS: seed=105; precision=fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<3x4x5x6xf32>) -> (tensor<4x6xf32>, tensor<3x5xf32>, tensor<1x4x1x6xf32>) {
    %0 = graph.reduce_sum %x {axes = [0, 2]} : (tensor<3x4x5x6xf32>) -> tensor<4x6xf32>
    %1 = graph.reduce_max %x {axes = [1, 3]} : (tensor<3x4x5x6xf32>) -> tensor<3x5xf32>
    %2 = graph.reduce_mean %x {axes = [0, 2], keepdims = true} : (tensor<3x4x5x6xf32>) -> tensor<1x4x1x6xf32>
    func.return %0, %1, %2 : tensor<4x6xf32>, tensor<3x5xf32>, tensor<1x4x1x6xf32>
  }
}
