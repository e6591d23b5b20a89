// Windows, and whole panels of rows, that lie in the padding: no row of the image is theirs.

// RUN-LEVELS: seed=114; precision=fp32,fp16; tolerance=4

builtin.module {
  func.func @main(%a: tensor<1x3x1x1xf32>, %b: tensor<1x3x3xf32>, %c: tensor<2x4x3xf32>, %d: tensor<2x32x2x2xf32>, %e: tensor<1x3x1x9xf32>, %f: tensor<1x5x20x6xf32>) -> (tensor<1x3x1x1xf32>, tensor<1x3x1xf32>, tensor<2x4x1xf32>, tensor<2x32x1x1xf32>, tensor<1x3x1x9xf32>, tensor<1x3x6x3xf32>, tensor<1x5x6x3xf32>) {
    %w0 = graph.weight "5eed000000000001" : tensor<3x3x1x1xf32>
    %b0 = graph.weight "5eed000000000002" : tensor<3xf32>
    %0 = graph.conv %a, %w0, %b0 {kernel = [1, 1], strides = [2, 2], pads = [1, 1, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x3x1x1xf32>, tensor<3x3x1x1xf32>, tensor<3xf32>) -> tensor<1x3x1x1xf32>
    %w1 = graph.weight "5eed000000000003" : tensor<3x3x1xf32>
    %1 = graph.conv %b, %w1, %b0 {kernel = [1], strides = [5], pads = [2, 0], dilations = [1], groups = 1} : (tensor<1x3x3xf32>, tensor<3x3x1xf32>, tensor<3xf32>) -> tensor<1x3x1xf32>
    %w2 = graph.weight "5eed000000000004" : tensor<4x2x2xf32>
    %b2 = graph.weight "5eed000000000005" : tensor<4xf32>
    %2 = graph.conv %c, %w2, %b2 {kernel = [2], strides = [7], pads = [4, 0], dilations = [1], groups = 2} : (tensor<2x4x3xf32>, tensor<4x2x2xf32>, tensor<4xf32>) -> tensor<2x4x1xf32>
    %w3 = graph.weight "5eed000000000006" : tensor<32x1x2x2xf32>
    %b3 = graph.weight "5eed000000000007" : tensor<32xf32>
    %3 = graph.conv %d, %w3, %b3 {kernel = [2, 2], strides = [5, 5], pads = [4, 4, 0, 0], dilations = [2, 2], groups = 32} : (tensor<2x32x2x2xf32>, tensor<32x1x2x2xf32>, tensor<32xf32>) -> tensor<2x32x1x1xf32>
    %w4 = graph.weight "5eed000000000008" : tensor<3x3x1x3xf32>
    %4 = graph.conv %e, %w4, %b0 {kernel = [1, 3], strides = [10, 1], pads = [9, 1, 0, 1], dilations = [1, 1], groups = 1} : (tensor<1x3x1x9xf32>, tensor<3x3x1x3xf32>, tensor<3xf32>) -> tensor<1x3x1x9xf32>
    %w5 = graph.weight "5eed000000000009" : tensor<3x5x1x1xf32>
    %5 = graph.conv %f, %w5, %b0 {kernel = [1, 1], strides = [5, 5], pads = [4, 4, 4, 4], dilations = [1, 1], groups = 1} : (tensor<1x5x20x6xf32>, tensor<3x5x1x1xf32>, tensor<3xf32>) -> tensor<1x3x6x3xf32>
    %w6 = graph.weight "5eed000000000010" : tensor<5x1x1x1xf32>
    %b6 = graph.weight "5eed000000000011" : tensor<5xf32>
    %6 = graph.conv %f, %w6, %b6 {kernel = [1, 1], strides = [5, 5], pads = [4, 4, 4, 4], dilations = [1, 1], groups = 5} : (tensor<1x5x20x6xf32>, tensor<5x1x1x1xf32>, tensor<5xf32>) -> tensor<1x5x6x3xf32>
    func.return %0, %1, %2, %3, %4, %5, %6 : tensor<1x3x1x1xf32>, tensor<1x3x1xf32>, tensor<2x4x1xf32>, tensor<2x32x1x1xf32>, tensor<1x3x1x9xf32>, tensor<1x3x6x3xf32>, tensor<1x5x6x3xf32>
  }
}
