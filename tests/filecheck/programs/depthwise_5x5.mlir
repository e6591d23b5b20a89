// Depthwise convolutions with stride 2, 3x3 and 5x5, of two images.

// RUN-LEVELS: seed=39; precision=fp16,fp32; tolerance=2

builtin.module {
  func.func @main(%x: tensor<2x35x13x10xf32>) -> (tensor<2x35x7x5xf32>, tensor<2x35x7x10xf32>) {
    %0 = graph.weight "5eed000000000001" : tensor<35x1x5x5xf32>
    %1 = graph.weight "5eed000000000002" : tensor<35xf32>
    %2 = graph.conv %x, %0, %1 {kernel = [5, 5], strides = [2, 2], pads = [2, 2, 2, 2], dilations = [1, 1], groups = 35} : (tensor<2x35x13x10xf32>, tensor<35x1x5x5xf32>, tensor<35xf32>) -> tensor<2x35x7x5xf32>
    %3 = graph.weight "5eed000000000003" : tensor<35x1x3x3xf32>
    %4 = graph.conv %x, %3 {kernel = [3, 3], strides = [2, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 35} : (tensor<2x35x13x10xf32>, tensor<35x1x3x3xf32>) -> tensor<2x35x7x10xf32>
    func.return %2, %4 : tensor<2x35x7x5xf32>, tensor<2x35x7x10xf32>
  }
}
