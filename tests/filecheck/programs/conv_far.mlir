// Windows over one axis whose taps lie far apart: they are channels; with groups too. A depthwise one stays as it is.

// RUN-LEVELS: seed=64; precision=fp32,fp16

func.func @main(%x: tensor<1x16x300xf32>, %w: tensor<8x16x3xf32>, %b: tensor<8xf32>, %g: tensor<6x8x2xf32>, %d: tensor<16x1x2xf32>) -> (tensor<1x8x120xf32>, tensor<1x6x250xf32>, tensor<1x16x235xf32>) {
  %0 = graph.conv %x, %w, %b {kernel = [3], strides = [1], pads = [10, 10], dilations = [100], groups = 1} : (tensor<1x16x300xf32>, tensor<8x16x3xf32>, tensor<8xf32>) -> tensor<1x8x120xf32>
  %1 = graph.conv %x, %g {kernel = [2], strides = [1], pads = [100, 0], dilations = [150], groups = 2} : (tensor<1x16x300xf32>, tensor<6x8x2xf32>) -> tensor<1x6x250xf32>
  %2 = graph.conv %x, %d {kernel = [2], strides = [1], pads = [0, 0], dilations = [65], groups = 16} : (tensor<1x16x300xf32>, tensor<16x1x2xf32>) -> tensor<1x16x235xf32>
  func.return %0, %1, %2 : tensor<1x8x120xf32>, tensor<1x6x250xf32>, tensor<1x16x235xf32>
}
