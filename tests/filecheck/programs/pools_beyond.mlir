// Windows that reach beyond their operand: taps that read nothing but padding are not taken.

// RUN-LEVELS: seed=103; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<1x3x5x6xf32>, %y: tensor<2x3x1x1xf32>, %z: tensor<1x2x3x4x5xf32>) -> (tensor<1x3x5x6xf32>, tensor<1x3x5x6xf32>, tensor<1x3x5x3xf32>, tensor<2x3x1x1xf32>, tensor<2x3x1x1xf32>, tensor<1x2x3x4x5xf32>, tensor<1x3x5x6xf32>) {
    %0 = graph.avg_pool %x {kernel = [41, 25], strides = [1, 1], pads = [20, 12, 20, 12], dilations = [1, 1]} : (tensor<1x3x5x6xf32>) -> tensor<1x3x5x6xf32>
    %1 = graph.avg_pool %x {kernel = [13, 15], strides = [1, 1], pads = [6, 7, 6, 7], dilations = [1, 1], count_include_pad = true} : (tensor<1x3x5x6xf32>) -> tensor<1x3x5x6xf32>
    %2 = graph.max_pool %x {kernel = [9, 7], strides = [2, 3], pads = [6, 8, 7, 6], dilations = [1, 2]} : (tensor<1x3x5x6xf32>) -> tensor<1x3x5x3xf32>
    %3 = graph.max_pool %y {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1]} : (tensor<2x3x1x1xf32>) -> tensor<2x3x1x1xf32>
    %4 = graph.avg_pool %y {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], count_include_pad = true} : (tensor<2x3x1x1xf32>) -> tensor<2x3x1x1xf32>
    %5 = graph.avg_pool %z {kernel = [7, 11, 1], strides = [1, 1, 1], pads = [3, 5, 0, 3, 5, 0], dilations = [1, 1, 1], count_include_pad = true} : (tensor<1x2x3x4x5xf32>) -> tensor<1x2x3x4x5xf32>
    %6 = graph.lp_pool %x {kernel = [3, 1001], strides = [1, 1], pads = [1, 500, 1, 500], dilations = [1, 1], p = 2} : (tensor<1x3x5x6xf32>) -> tensor<1x3x5x6xf32>
    func.return %0, %1, %2, %3, %4, %5, %6 : tensor<1x3x5x6xf32>, tensor<1x3x5x6xf32>, tensor<1x3x5x3xf32>, tensor<2x3x1x1xf32>, tensor<2x3x1x1xf32>, tensor<1x2x3x4x5xf32>, tensor<1x3x5x6xf32>
  }
}
