// Panels and windows that begin in the padding below, or so far above that several lie in it.

// RUN-LEVELS: seed=9; targets=tiny,edge; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x0: tensor<1x64x30x200xf32>, %x1: tensor<1x40x9x160xf32>) -> (tensor<1x24x6x29xf32>, tensor<1x24x7x54xf32>) {
    %w0 = graph.weight "5eed000000000001" : tensor<24x64x3x3xf32>
    %b0 = graph.weight "5eed000000000002" : tensor<24xf32>
    %y0 = graph.conv %x0, %w0, %b0 {kernel = [3, 3], strides = [7, 7], pads = [1, 1, 9, 1], dilations = [1, 1], groups = 1} : (tensor<1x64x30x200xf32>, tensor<24x64x3x3xf32>, tensor<24xf32>) -> tensor<1x24x6x29xf32>
    %w1 = graph.weight "5eed000000000003" : tensor<24x40x2x3xf32>
    %b1 = graph.weight "5eed000000000004" : tensor<24xf32>
    %y1 = graph.conv %x1, %w1, %b1 {kernel = [2, 3], strides = [4, 3], pads = [8, 1, 9, 1], dilations = [1, 1], groups = 1} : (tensor<1x40x9x160xf32>, tensor<24x40x2x3xf32>, tensor<24xf32>) -> tensor<1x24x7x54xf32>
    func.return %y0, %y1 : tensor<1x24x6x29xf32>, tensor<1x24x7x54xf32>
  }
}
