// A 3x3 convolution with padding; bias and relu join its kernel.

// RUN-LEVELS: seed=31; precision=fp16,fp32; tolerance=2

builtin.module {
  func.func @main(%x: tensor<1x16x13x17xf32>) -> tensor<1x24x13x17xf32> {
    %0 = graph.weight "5eed000000000001" : tensor<24x16x3x3xf32>
    %1 = graph.weight "5eed000000000002" : tensor<24xf32>
    %2 = graph.conv %x, %0, %1 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<1x16x13x17xf32>, tensor<24x16x3x3xf32>, tensor<24xf32>) -> tensor<1x24x13x17xf32>
    %3 = graph.relu %2 : (tensor<1x24x13x17xf32>) -> tensor<1x24x13x17xf32>
    func.return %3 : tensor<1x24x13x17xf32>
  }
}
