// K of a convolution beyond 2048, and an image larger than a panel.

// RUN-LEVELS: seed=36; precision=fp16; tolerance=8

builtin.module {
  func.func @main(%x: tensor<1x240x7x6xf32>, %z: tensor<1x8x40x50xf32>) -> (tensor<1x12x7x6xf32>, tensor<1x8x40x50xf32>) {
    %0 = graph.weight "5eed000000000001" : tensor<12x240x3x3xf32>
    %1 = graph.weight "5eed000000000002" : tensor<12xf32>
    %2 = graph.conv %x, %0, %1 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<1x240x7x6xf32>, tensor<12x240x3x3xf32>, tensor<12xf32>) -> tensor<1x12x7x6xf32>
    %3 = graph.weight "5eed000000000003" : tensor<8x8x3x3xf32>
    %4 = graph.weight "5eed000000000004" : tensor<8xf32>
    %5 = graph.conv %z, %3, %4 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<1x8x40x50xf32>, tensor<8x8x3x3xf32>, tensor<8xf32>) -> tensor<1x8x40x50xf32>
    func.return %2, %5 : tensor<1x12x7x6xf32>, tensor<1x8x40x50xf32>
  }
}
