// Many groups of few channels between other convolutions, with a residual; groups with more outputs than channels; one
// group at a time, of more k than a segment has.

// RUN-LEVELS: seed=103; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<1x24x12x11xf32>, %y: tensor<2x20x5x5xf32>, %z: tensor<1x480x4x4xf32>) -> (tensor<1x24x12x11xf32>, tensor<2x60x3x3xf32>, tensor<1x40x4x4xf32>) {
    %0 = graph.weight "5eed000000000001" : tensor<64x24x1x1xf32>
    %1 = graph.weight "5eed000000000002" : tensor<64x4x3x3xf32>
    %2 = graph.weight "5eed000000000003" : tensor<64xf32>
    %3 = graph.weight "5eed000000000004" : tensor<24x64x1x1xf32>
    %4 = graph.weight "5eed000000000005" : tensor<60x2x3x3xf32>
    %5 = graph.weight "5eed000000000006" : tensor<40x240x3x3xf32>
    %6 = graph.conv %x, %0 {kernel = [1, 1], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x24x12x11xf32>, tensor<64x24x1x1xf32>) -> tensor<1x64x12x11xf32>
    %7 = graph.relu %6 : (tensor<1x64x12x11xf32>) -> tensor<1x64x12x11xf32>
    %8 = graph.conv %7, %1, %2 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 16} : (tensor<1x64x12x11xf32>, tensor<64x4x3x3xf32>, tensor<64xf32>) -> tensor<1x64x12x11xf32>
    %9 = graph.relu %8 : (tensor<1x64x12x11xf32>) -> tensor<1x64x12x11xf32>
    %10 = graph.conv %9, %3 {kernel = [1, 1], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x64x12x11xf32>, tensor<24x64x1x1xf32>) -> tensor<1x24x12x11xf32>
    %11 = graph.add %10, %x : (tensor<1x24x12x11xf32>, tensor<1x24x12x11xf32>) -> tensor<1x24x12x11xf32>
    %12 = graph.conv %y, %4 {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 10} : (tensor<2x20x5x5xf32>, tensor<60x2x3x3xf32>) -> tensor<2x60x3x3xf32>
    %13 = graph.conv %z, %5 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 2} : (tensor<1x480x4x4xf32>, tensor<40x240x3x3xf32>) -> tensor<1x40x4x4xf32>
    func.return %11, %12, %13 : tensor<1x24x12x11xf32>, tensor<2x60x3x3xf32>, tensor<1x40x4x4xf32>
  }
}
