// More padding than the kernel reaches: whole rows of the result are bias alone.

// RUN-LEVELS: seed=101; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<1x20x3x3xf32>, %y: tensor<1x4x5x5xf32>) -> (tensor<1x5x5x5xf32>, tensor<1x5x10x10xf32>) {
    %0 = graph.weight "5eed000000000001" : tensor<5x20x1x1xf32>
    %1 = graph.weight "5eed000000000002" : tensor<5xf32>
    %2 = graph.conv %x, %0, %1 {kernel = [1, 1], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<1x20x3x3xf32>, tensor<5x20x1x1xf32>, tensor<5xf32>) -> tensor<1x5x5x5xf32>
    %3 = graph.weight "5eed000000000003" : tensor<5x4x3x3xf32>
    %4 = graph.weight "5eed000000000004" : tensor<5xf32>
    %5 = graph.conv %y, %3, %4 {kernel = [3, 3], strides = [1, 1], pads = [4, 5, 3, 2], dilations = [1, 1], groups = 1} : (tensor<1x4x5x5xf32>, tensor<5x4x3x3xf32>, tensor<5xf32>) -> tensor<1x5x10x10xf32>
    func.return %2, %5 : tensor<1x5x5x5xf32>, tensor<1x5x10x10xf32>
  }
}
