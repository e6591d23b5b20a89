// Panels of convolutions by group and of depthwise ones that come by chunks of k, some of them in the padding below.

// RUN-LEVELS: seed=8; targets=tiny,edge; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x0: tensor<2x50x14x40xf32>, %x1: tensor<1x17x18x100xf32>) -> (tensor<2x32x2x13xf32>, tensor<1x17x2x46xf32>) {
    %w0 = graph.weight "5eed000000000001" : tensor<32x25x31x4xf32>
    %b0 = graph.weight "5eed000000000002" : tensor<32xf32>
    %y0 = graph.conv %x0, %w0, %b0 {kernel = [31, 4], strides = [7, 3], pads = [9, 0, 17, 0], dilations = [1, 1], groups = 2} : (tensor<2x50x14x40xf32>, tensor<32x25x31x4xf32>, tensor<32xf32>) -> tensor<2x32x2x13xf32>
    %w1 = graph.weight "5eed000000000003" : tensor<17x1x63x7xf32>
    %b1 = graph.weight "5eed000000000004" : tensor<17xf32>
    %y1 = graph.conv %x1, %w1, %b1 {kernel = [63, 7], strides = [9, 2], pads = [0, 0, 54, 4], dilations = [1, 2], groups = 17} : (tensor<1x17x18x100xf32>, tensor<17x1x63x7xf32>, tensor<17xf32>) -> tensor<1x17x2x46xf32>
    func.return %y0, %y1 : tensor<2x32x2x13xf32>, tensor<1x17x2x46xf32>
  }
}
