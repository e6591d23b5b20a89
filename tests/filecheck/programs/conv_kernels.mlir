// Kernels of 7x7, of one row, of one column, of the whole image, and smaller than the stride.

// RUN-LEVELS: seed=102; precision=fp16; tolerance=4

builtin.module {
  func.func @main(%x: tensor<1x3x31x29xf32>, %y: tensor<1x10x1x60xf32>, %z: tensor<1x10x60x1xf32>, %w: tensor<3x5x6x6xf32>, %v: tensor<1x9x17x17xf32>) -> (tensor<1x20x16x15xf32>, tensor<1x6x1x60xf32>, tensor<1x6x60x1xf32>, tensor<3x4x1x1xf32>, tensor<1x5x4x4xf32>) {
    %0 = graph.weight "5eed000000000001" : tensor<20x3x7x7xf32>
    %1 = graph.weight "5eed000000000002" : tensor<20xf32>
    %2 = graph.conv %x, %0, %1 {kernel = [7, 7], strides = [2, 2], pads = [3, 3, 3, 3], dilations = [1, 1], groups = 1} : (tensor<1x3x31x29xf32>, tensor<20x3x7x7xf32>, tensor<20xf32>) -> tensor<1x20x16x15xf32>
    %3 = graph.weight "5eed000000000003" : tensor<6x10x1x9xf32>
    %4 = graph.weight "5eed000000000004" : tensor<6xf32>
    %5 = graph.conv %y, %3, %4 {kernel = [1, 9], strides = [1, 1], pads = [0, 4, 0, 4], dilations = [1, 1], groups = 1} : (tensor<1x10x1x60xf32>, tensor<6x10x1x9xf32>, tensor<6xf32>) -> tensor<1x6x1x60xf32>
    %6 = graph.weight "5eed000000000005" : tensor<6x10x9x1xf32>
    %7 = graph.weight "5eed000000000006" : tensor<6xf32>
    %8 = graph.conv %z, %6, %7 {kernel = [9, 1], strides = [1, 1], pads = [4, 0, 4, 0], dilations = [1, 1], groups = 1} : (tensor<1x10x60x1xf32>, tensor<6x10x9x1xf32>, tensor<6xf32>) -> tensor<1x6x60x1xf32>
    %9 = graph.weight "5eed000000000007" : tensor<4x5x6x6xf32>
    %10 = graph.weight "5eed000000000008" : tensor<4xf32>
    %11 = graph.conv %w, %9, %10 {kernel = [6, 6], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<3x5x6x6xf32>, tensor<4x5x6x6xf32>, tensor<4xf32>) -> tensor<3x4x1x1xf32>
    %12 = graph.weight "5eed000000000009" : tensor<5x9x2x2xf32>
    %13 = graph.weight "5eed00000000000a" : tensor<5xf32>
    %14 = graph.conv %v, %12, %13 {kernel = [2, 2], strides = [5, 4], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x9x17x17xf32>, tensor<5x9x2x2xf32>, tensor<5xf32>) -> tensor<1x5x4x4xf32>
    func.return %2, %5, %8, %11, %14 : tensor<1x20x16x15xf32>, tensor<1x6x1x60xf32>, tensor<1x6x60x1xf32>, tensor<3x4x1x1xf32>, tensor<1x5x4x4xf32>
  }
}
