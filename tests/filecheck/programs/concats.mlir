// Concatenation along the last, the first and a middle axis.

// RUN-LEVELS: seed=66; precision=fp32,fp16

builtin.module {
  func.func @main(%x: tensor<4x5x6xf32>, %y: tensor<4x5x3xf32>, %z: tensor<4x2x6xf32>, %w: tensor<1x5x6xf32>) -> (tensor<4x5x15xf32>, tensor<4x7x6xf32>, tensor<6x5x6xf32>) {
    %0 = graph.concat %x, %y, %x {axis = 2} : (tensor<4x5x6xf32>, tensor<4x5x3xf32>, tensor<4x5x6xf32>) -> tensor<4x5x15xf32>
    %1 = graph.concat %z, %x {axis = 1} : (tensor<4x2x6xf32>, tensor<4x5x6xf32>) -> tensor<4x7x6xf32>
    %2 = graph.concat %w, %x, %w {axis = 0} : (tensor<1x5x6xf32>, tensor<4x5x6xf32>, tensor<1x5x6xf32>) -> tensor<6x5x6xf32>
    func.return %0, %1, %2 : tensor<4x5x15xf32>, tensor<4x7x6xf32>, tensor<6x5x6xf32>
  }
}
