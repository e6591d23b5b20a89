// Three axes: the taps over the first are channels.

// RUN-LEVELS: seed=96; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<2x3x6x7x8xf32>, %g: tensor<1x4x5x6x6xf32>) -> (tensor<2x5x3x7x4xf32>, tensor<1x6x5x4x4xf32>, tensor<1x4x3x6x6xf32>) {
    %0 = graph.weight "5eed000000000001" : tensor<5x3x3x3x3xf32>
    %1 = graph.weight "5eed000000000002" : tensor<5xf32>
    %2 = graph.weight "5eed000000000003" : tensor<6x2x2x3x3xf32>
    %3 = graph.weight "5eed000000000004" : tensor<4x1x1x3x3xf32>
    %4 = graph.conv %x, %0, %1 {kernel = [3, 3, 3], strides = [2, 1, 2], pads = [1, 1, 1, 1, 1, 1], dilations = [1, 1, 1], groups = 1} : (tensor<2x3x6x7x8xf32>, tensor<5x3x3x3x3xf32>, tensor<5xf32>) -> tensor<2x5x3x7x4xf32>
    %5 = graph.conv %g, %2 {kernel = [2, 3, 3], strides = [1, 1, 1], pads = [2, 0, 0, 0, 0, 0], dilations = [2, 1, 1], groups = 2} : (tensor<1x4x5x6x6xf32>, tensor<6x2x2x3x3xf32>) -> tensor<1x6x5x4x4xf32>
    %6 = graph.conv %g, %3 {kernel = [1, 3, 3], strides = [2, 1, 1], pads = [0, 1, 1, 0, 1, 1], dilations = [1, 1, 1], groups = 4} : (tensor<1x4x5x6x6xf32>, tensor<4x1x1x3x3xf32>) -> tensor<1x4x3x6x6xf32>
    func.return %4, %5, %6 : tensor<2x5x3x7x4xf32>, tensor<1x6x5x4x4xf32>, tensor<1x4x3x6x6xf32>
  }
}
