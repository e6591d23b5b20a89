// Resampling of each axis by weights of two places: runs behind the axis, a last axis, an image.

// RUN-LEVELS: seed=12; precision=fp32,fp16; tolerance=2

builtin.module {
  func.func @main(%x: tensor<3x5x20xf32>, %y: tensor<2x3x5xf32>, %z: tensor<1x17x5x6xf32>, %w: tensor<2x7xf32>) -> (tensor<3x7x20xf32>, tensor<2x3x7xf32>, tensor<1x17x7x6xf32>) {
    %i = graph.constant dense<[[0, 0, 1, 1, 2, 3, 4], [0, 1, 1, 2, 3, 4, 4]]> : tensor<2x7xi32>
    %0 = graph.resample %x, %i, %w {axis = 1} : (tensor<3x5x20xf32>, tensor<2x7xi32>, tensor<2x7xf32>) -> tensor<3x7x20xf32>
    %1 = graph.resample %y, %i, %w {axis = 2} : (tensor<2x3x5xf32>, tensor<2x7xi32>, tensor<2x7xf32>) -> tensor<2x3x7xf32>
    %2 = graph.resample %z, %i, %w {axis = 2} : (tensor<1x17x5x6xf32>, tensor<2x7xi32>, tensor<2x7xf32>) -> tensor<1x17x7x6xf32>
    func.return %0, %1, %2 : tensor<3x7x20xf32>, tensor<2x3x7xf32>, tensor<1x17x7x6xf32>
  }
}
