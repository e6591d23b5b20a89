// Two outputs for each input channel.

// RUN-LEVELS: seed=60; precision=fp32; tolerance=2

builtin.module {
  func.func @main(%x: tensor<1x6x8x8xf32>) -> tensor<1x12x8x8xf32> {
    %0 = graph.weight "5eed000000000001" : tensor<12x1x3x3xf32>
    %1 = graph.weight "5eed000000000002" : tensor<12xf32>
    %2 = graph.conv %x, %0, %1 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 6} : (tensor<1x6x8x8xf32>, tensor<12x1x3x3xf32>, tensor<12xf32>) -> tensor<1x12x8x8xf32>
    func.return %2 : tensor<1x12x8x8xf32>
  }
}
