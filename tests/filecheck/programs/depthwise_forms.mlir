// Depthwise with dilation and uneven strides, over one axis, with a residual.

// RUN-LEVELS: seed=103; precision=fp16; tolerance=4

builtin.module {
  func.func @main(%x: tensor<2x20x17x13xf32>, %y: tensor<1x20x1x40xf32>, %z: tensor<1x20x8x8xf32>) -> (tensor<2x20x9x5xf32>, tensor<1x20x1x40xf32>, tensor<1x20x8x8xf32>) {
    %0 = graph.weight "5eed000000000001" : tensor<20x1x3x3xf32>
    %1 = graph.weight "5eed000000000002" : tensor<20xf32>
    %2 = graph.conv %z, %0, %1 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 20} : (tensor<1x20x8x8xf32>, tensor<20x1x3x3xf32>, tensor<20xf32>) -> tensor<1x20x8x8xf32>
    %3 = graph.weight "5eed000000000003" : tensor<20x1x3x3xf32>
    %4 = graph.weight "5eed000000000004" : tensor<20xf32>
    %5 = graph.conv %x, %3, %4 {kernel = [3, 3], strides = [2, 3], pads = [2, 1, 2, 1], dilations = [2, 1], groups = 20} : (tensor<2x20x17x13xf32>, tensor<20x1x3x3xf32>, tensor<20xf32>) -> tensor<2x20x9x5xf32>
    %6 = graph.weight "5eed000000000005" : tensor<20x1x1x5xf32>
    %7 = graph.weight "5eed000000000006" : tensor<20xf32>
    %8 = graph.conv %y, %6, %7 {kernel = [1, 5], strides = [1, 1], pads = [0, 2, 0, 2], dilations = [1, 1], groups = 20} : (tensor<1x20x1x40xf32>, tensor<20x1x1x5xf32>, tensor<20xf32>) -> tensor<1x20x1x40xf32>
    %9 = graph.silu %2 : (tensor<1x20x8x8xf32>) -> tensor<1x20x8x8xf32>
    %10 = graph.add %9, %z : (tensor<1x20x8x8xf32>, tensor<1x20x8x8xf32>) -> tensor<1x20x8x8xf32>
    func.return %5, %8, %10 : tensor<2x20x9x5xf32>, tensor<1x20x1x40xf32>, tensor<1x20x8x8xf32>
  }
}
