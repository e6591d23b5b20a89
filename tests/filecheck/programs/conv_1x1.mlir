// Pointwise convolutions, of few channels and of many, with stride 2.

// RUN-LEVELS: seed=30; precision=fp32,fp16; tolerance=2

builtin.module {
  func.func @main(%x: tensor<1x20x9x11xf32>, %y: tensor<2x3x6x6xf32>) -> (tensor<1x18x9x11xf32>, tensor<1x16x5x6xf32>, tensor<2x5x6x6xf32>) {
    %0 = graph.weight "5eed000000000001" : tensor<18x20x1x1xf32>
    %1 = graph.weight "5eed000000000002" : tensor<18xf32>
    %2 = graph.conv %x, %0, %1 {kernel = [1, 1], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x20x9x11xf32>, tensor<18x20x1x1xf32>, tensor<18xf32>) -> tensor<1x18x9x11xf32>
    %3 = graph.weight "5eed000000000003" : tensor<16x20x1x1xf32>
    %4 = graph.weight "5eed000000000004" : tensor<16xf32>
    %5 = graph.conv %x, %3, %4 {kernel = [1, 1], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x20x9x11xf32>, tensor<16x20x1x1xf32>, tensor<16xf32>) -> tensor<1x16x5x6xf32>
    %6 = graph.weight "5eed000000000005" : tensor<5x3x1x1xf32>
    %7 = graph.weight "5eed000000000006" : tensor<5xf32>
    %8 = graph.conv %y, %6, %7 {kernel = [1, 1], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<2x3x6x6xf32>, tensor<5x3x1x1xf32>, tensor<5xf32>) -> tensor<2x5x6x6xf32>
    func.return %2, %5, %8 : tensor<1x18x9x11xf32>, tensor<1x16x5x6xf32>, tensor<2x5x6x6xf32>
  }
}
