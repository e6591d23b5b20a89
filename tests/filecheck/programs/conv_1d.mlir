// A convolution over one axis.

// RUN-LEVELS: seed=37; precision=fp32,fp16; tolerance=2

builtin.module {
  func.func @main(%x: tensor<2x10x30xf32>) -> tensor<2x12x15xf32> {
    %0 = graph.weight "5eed000000000001" : tensor<12x10x5xf32>
    %1 = graph.weight "5eed000000000002" : tensor<12xf32>
    %2 = graph.conv %x, %0, %1 {kernel = [5], strides = [2], pads = [2, 2], dilations = [1], groups = 1} : (tensor<2x10x30xf32>, tensor<12x10x5xf32>, tensor<12xf32>) -> tensor<2x12x15xf32>
    func.return %2 : tensor<2x12x15xf32>
  }
}
