// A 5x5 convolution with stride 2 and uneven padding.

// RUN-LEVELS: seed=33; precision=fp16,fp32; tolerance=2

builtin.module {
  func.func @main(%x: tensor<1x6x15x14xf32>) -> tensor<1x10x7x7xf32> {
    %0 = graph.weight "5eed000000000001" : tensor<10x6x5x5xf32>
    %1 = graph.weight "5eed000000000002" : tensor<10xf32>
    %2 = graph.conv %x, %0, %1 {kernel = [5, 5], strides = [2, 2], pads = [2, 1, 0, 3], dilations = [1, 1], groups = 1} : (tensor<1x6x15x14xf32>, tensor<10x6x5x5xf32>, tensor<10xf32>) -> tensor<1x10x7x7xf32>
    func.return %2 : tensor<1x10x7x7xf32>
  }
}
