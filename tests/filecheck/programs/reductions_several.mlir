// Reductions over several axes, apart and together, and over all; of integers.

// RUN-LEVELS: seed=19; precision=fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<4x6x5x7xf32>, %i: tensor<5x33xi32>) -> (tensor<6x5xf32>, tensor<4x7xf32>, tensor<4x6x1x1xf32>, tensor<f32>, tensor<5xi32>, tensor<33xi32>) {
    %0 = graph.reduce_sum %x {axes = [0, 3]} : (tensor<4x6x5x7xf32>) -> tensor<6x5xf32>
    %1 = graph.reduce_max %x {axes = [1, 2]} : (tensor<4x6x5x7xf32>) -> tensor<4x7xf32>
    %2 = graph.reduce_mean %x {axes = [2, 3], keepdims = true} : (tensor<4x6x5x7xf32>) -> tensor<4x6x1x1xf32>
    %3 = graph.reduce_sum %x {axes = [0, 1, 2, 3]} : (tensor<4x6x5x7xf32>) -> tensor<f32>
    %4 = graph.reduce_sum %i {axes = [1]} : (tensor<5x33xi32>) -> tensor<5xi32>
    %5 = graph.reduce_max %i {axes = [0]} : (tensor<5x33xi32>) -> tensor<33xi32>
    func.return %0, %1, %2, %3, %4, %5 : tensor<6x5xf32>, tensor<4x7xf32>, tensor<4x6x1x1xf32>, tensor<f32>, tensor<5xi32>, tensor<33xi32>
  }
}
