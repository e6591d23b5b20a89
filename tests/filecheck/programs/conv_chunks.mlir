// Panels that come by chunks of k: blocks of channels where a segment ends inside a block, and rows of a tall kernel.

// RUN-LEVELS: seed=7; targets=tiny,edge; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x0: tensor<1x256x3x28xf32>, %x1: tensor<1x20x98x20xf32>, %x2: tensor<1x3x63x120xf32>) -> (tensor<1x16x3x28xf32>, tensor<1x16x3x10xf32>, tensor<1x8x1x119xf32>) {
    %w0 = graph.weight "5eed000000000001" : tensor<16x256x3x3xf32>
    %b0 = graph.weight "5eed000000000002" : tensor<16xf32>
    %y0 = graph.conv %x0, %w0, %b0 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<1x256x3x28xf32>, tensor<16x256x3x3xf32>, tensor<16xf32>) -> tensor<1x16x3x28xf32>
    %w1 = graph.weight "5eed000000000003" : tensor<16x20x96x3xf32>
    %b1 = graph.weight "5eed000000000004" : tensor<16xf32>
    %y1 = graph.conv %x1, %w1, %b1 {kernel = [96, 3], strides = [1, 2], pads = [0, 1, 0, 1], dilations = [1, 1], groups = 1} : (tensor<1x20x98x20xf32>, tensor<16x20x96x3xf32>, tensor<16xf32>) -> tensor<1x16x3x10xf32>
    %w2 = graph.weight "5eed000000000005" : tensor<8x3x63x4xf32>
    %b2 = graph.weight "5eed000000000006" : tensor<8xf32>
    %y2 = graph.conv %x2, %w2, %b2 {kernel = [63, 4], strides = [1, 1], pads = [0, 0, 0, 2], dilations = [1, 1], groups = 1} : (tensor<1x3x63x120xf32>, tensor<8x3x63x4xf32>, tensor<8xf32>) -> tensor<1x8x1x119xf32>
    func.return %y0, %y1, %y2 : tensor<1x16x3x28xf32>, tensor<1x16x3x10xf32>, tensor<1x8x1x119xf32>
  }
}
