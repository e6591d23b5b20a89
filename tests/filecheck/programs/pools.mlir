// Pooling with padding, overlapping and not; padding counts or not.

// RUN-LEVELS: seed=61; precision=fp16,fp32

builtin.module {
  func.func @main(%x: tensor<1x19x12x13xf32>) -> (tensor<1x19x6x7xf32>, tensor<1x19x6x7xf32>, tensor<1x19x13x14xf32>, tensor<1x19x4x6xf32>) {
    %0 = graph.max_pool %x {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1]} : (tensor<1x19x12x13xf32>) -> tensor<1x19x6x7xf32>
    %1 = graph.avg_pool %x {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1]} : (tensor<1x19x12x13xf32>) -> tensor<1x19x6x7xf32>
    %2 = graph.avg_pool %x {kernel = [2, 2], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], count_include_pad = true} : (tensor<1x19x12x13xf32>) -> tensor<1x19x13x14xf32>
    %3 = graph.max_pool %x {kernel = [3, 2], strides = [3, 2], pads = [0, 0, 0, 0], dilations = [1, 1]} : (tensor<1x19x12x13xf32>) -> tensor<1x19x4x6xf32>
    func.return %0, %1, %2, %3 : tensor<1x19x6x7xf32>, tensor<1x19x6x7xf32>, tensor<1x19x13x14xf32>, tensor<1x19x4x6xf32>
  }
}
