// Transposed convolutions: strides with and without gaps, dilations, groups, one to three axes, weights of run time.

// RUN-LEVELS: seed=97; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<2x6x5x4xf32>, %w: tensor<6x3x3x3xf32>, %s: tensor<1x8x9xf32>, %v: tensor<1x2x3x3x3xf32>) -> (tensor<2x3x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x6x16x9xf32>, tensor<1x4x36xf32>, tensor<1x3x6x5x7xf32>, tensor<2x2x13x10xf32>) {
    %0 = graph.weight "5eed000000000001" : tensor<6x4x4x4xf32>
    %1 = graph.weight "5eed000000000002" : tensor<4xf32>
    %2 = graph.weight "5eed000000000003" : tensor<6x3x2x2xf32>
    %3 = graph.weight "5eed000000000004" : tensor<8x4x7xf32>
    %4 = graph.weight "5eed000000000005" : tensor<2x3x2x3x3xf32>
    %5 = graph.weight "5eed000000000006" : tensor<6x2x1x2xf32>
    %6 = graph.conv_transpose %x, %w {strides = [2, 2], pads = [1, 1, 0, 0], dilations = [1, 1], groups = 1} : (tensor<2x6x5x4xf32>, tensor<6x3x3x3xf32>) -> tensor<2x3x10x8xf32>
    %7 = graph.conv_transpose %x, %0, %1 {strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<2x6x5x4xf32>, tensor<6x4x4x4xf32>, tensor<4xf32>) -> tensor<2x4x10x8xf32>
    %8 = graph.conv_transpose %x, %2 {strides = [3, 2], pads = [0, 1, -1, -1], dilations = [2, 2], groups = 2} : (tensor<2x6x5x4xf32>, tensor<6x3x2x2xf32>) -> tensor<2x6x16x9xf32>
    %9 = graph.conv_transpose %s, %3, %1 {strides = [4], pads = [2, 1], dilations = [1], groups = 1} : (tensor<1x8x9xf32>, tensor<8x4x7xf32>, tensor<4xf32>) -> tensor<1x4x36xf32>
    %10 = graph.conv_transpose %v, %4 {strides = [2, 1, 2], pads = [0, 0, 0, 0, 0, 0], dilations = [1, 1, 1], groups = 1} : (tensor<1x2x3x3x3xf32>, tensor<2x3x2x3x3xf32>) -> tensor<1x3x6x5x7xf32>
    %11 = graph.conv_transpose %x, %5 {strides = [3, 3], pads = [0, 1, 0, 0], dilations = [1, 1], groups = 1} : (tensor<2x6x5x4xf32>, tensor<6x2x1x2xf32>) -> tensor<2x2x13x10xf32>
    func.return %6, %7, %8, %9, %10, %11 : tensor<2x3x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x6x16x9xf32>, tensor<1x4x36xf32>, tensor<1x3x6x5x7xf32>, tensor<2x2x13x10xf32>
  }
}
