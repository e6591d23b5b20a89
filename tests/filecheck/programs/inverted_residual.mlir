// Expand, depthwise, project, add: a mobile block.

// RUN-LEVELS: seed=72; precision=fp16; tolerance=4

builtin.module {
  func.func @main(%x: tensor<1x8x10x10xf32>) -> tensor<1x8x10x10xf32> {
    %0 = graph.weight "5eed000000000001" : tensor<24x8x1x1xf32>
    %1 = graph.weight "5eed000000000002" : tensor<24xf32>
    %2 = graph.conv %x, %0, %1 {kernel = [1, 1], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x8x10x10xf32>, tensor<24x8x1x1xf32>, tensor<24xf32>) -> tensor<1x24x10x10xf32>
    %3 = graph.hardswish %2 : (tensor<1x24x10x10xf32>) -> tensor<1x24x10x10xf32>
    %4 = graph.weight "5eed000000000003" : tensor<24x1x3x3xf32>
    %5 = graph.weight "5eed000000000004" : tensor<24xf32>
    %6 = graph.conv %3, %4, %5 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 24} : (tensor<1x24x10x10xf32>, tensor<24x1x3x3xf32>, tensor<24xf32>) -> tensor<1x24x10x10xf32>
    %7 = graph.hardswish %6 : (tensor<1x24x10x10xf32>) -> tensor<1x24x10x10xf32>
    %8 = graph.weight "5eed000000000005" : tensor<8x24x1x1xf32>
    %9 = graph.weight "5eed000000000006" : tensor<8xf32>
    %10 = graph.conv %7, %8, %9 {kernel = [1, 1], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x24x10x10xf32>, tensor<8x24x1x1xf32>, tensor<8xf32>) -> tensor<1x8x10x10xf32>
    %11 = graph.add %10, %x : (tensor<1x8x10x10xf32>, tensor<1x8x10x10xf32>) -> tensor<1x8x10x10xf32>
    func.return %11 : tensor<1x8x10x10xf32>
  }
}
