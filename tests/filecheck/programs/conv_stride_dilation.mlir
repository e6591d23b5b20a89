// Strides and dilations that differ by axis.

// RUN-LEVELS: seed=34; precision=fp16; tolerance=2

builtin.module {
  func.func @main(%x: tensor<1x16x14x19xf32>) -> (tensor<1x8x7x17xf32>, tensor<1x8x13x7xf32>, tensor<1x8x4x6xf32>) {
    %0 = graph.weight "5eed000000000001" : tensor<8x16x3x2xf32>
    %1 = graph.weight "5eed000000000002" : tensor<8xf32>
    %2 = graph.conv %x, %0, %1 {kernel = [3, 2], strides = [2, 1], pads = [2, 0, 1, 1], dilations = [2, 3], groups = 1} : (tensor<1x16x14x19xf32>, tensor<8x16x3x2xf32>, tensor<8xf32>) -> tensor<1x8x7x17xf32>
    %3 = graph.weight "5eed000000000003" : tensor<8x16x2x3xf32>
    %4 = graph.weight "5eed000000000004" : tensor<8xf32>
    %5 = graph.conv %x, %3, %4 {kernel = [2, 3], strides = [1, 3], pads = [0, 2, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x16x14x19xf32>, tensor<8x16x2x3xf32>, tensor<8xf32>) -> tensor<1x8x13x7xf32>
    %6 = graph.weight "5eed000000000005" : tensor<8x16x3x3xf32>
    %7 = graph.weight "5eed000000000006" : tensor<8xf32>
    %8 = graph.conv %x, %6, %7 {kernel = [3, 3], strides = [3, 3], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x16x14x19xf32>, tensor<8x16x3x3xf32>, tensor<8xf32>) -> tensor<1x8x4x6xf32>
    func.return %2, %5, %8 : tensor<1x8x7x17xf32>, tensor<1x8x13x7xf32>, tensor<1x8x4x6xf32>
  }
}
