// A convolution of 1 channel: k is padded to whole blocks.

// RUN-LEVELS: seed=41; precision=fp16,fp32; tolerance=2

builtin.module {
  func.func @main(%x: tensor<2x1x10x9xf32>) -> tensor<2x7x10x9xf32> {
    %0 = graph.weight "5eed000000000001" : tensor<7x1x3x3xf32>
    %1 = graph.weight "5eed000000000002" : tensor<7xf32>
    %2 = graph.conv %x, %0, %1 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<2x1x10x9xf32>, tensor<7x1x3x3xf32>, tensor<7xf32>) -> tensor<2x7x10x9xf32>
    func.return %2 : tensor<2x7x10x9xf32>
  }
}
