// Two convolutions and the input added: values are shared, activations fused.

// RUN-LEVELS: seed=70; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<1x16x9x10xf32>) -> tensor<1x16x9x10xf32> {
    %0 = graph.weight "5eed000000000001" : tensor<16x16x3x3xf32>
    %1 = graph.weight "5eed000000000002" : tensor<16xf32>
    %2 = graph.conv %x, %0, %1 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<1x16x9x10xf32>, tensor<16x16x3x3xf32>, tensor<16xf32>) -> tensor<1x16x9x10xf32>
    %3 = graph.relu %2 : (tensor<1x16x9x10xf32>) -> tensor<1x16x9x10xf32>
    %4 = graph.weight "5eed000000000003" : tensor<16x16x3x3xf32>
    %5 = graph.weight "5eed000000000004" : tensor<16xf32>
    %6 = graph.conv %3, %4, %5 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<1x16x9x10xf32>, tensor<16x16x3x3xf32>, tensor<16xf32>) -> tensor<1x16x9x10xf32>
    %7 = graph.add %6, %x : (tensor<1x16x9x10xf32>, tensor<1x16x9x10xf32>) -> tensor<1x16x9x10xf32>
    %8 = graph.relu %7 : (tensor<1x16x9x10xf32>) -> tensor<1x16x9x10xf32>
    func.return %8 : tensor<1x16x9x10xf32>
  }
}
