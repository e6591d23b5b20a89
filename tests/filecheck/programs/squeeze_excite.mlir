// A mean over the image scales the channels.

// RUN-LEVELS: seed=71; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<1x18x6x7xf32>) -> tensor<1x18x6x7xf32> {
    %0 = graph.global_average_pool %x : (tensor<1x18x6x7xf32>) -> tensor<1x18x1x1xf32>
    %1 = graph.weight "5eed000000000001" : tensor<6x18x1x1xf32>
    %2 = graph.weight "5eed000000000002" : tensor<6xf32>
    %3 = graph.conv %0, %1, %2 {kernel = [1, 1], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x18x1x1xf32>, tensor<6x18x1x1xf32>, tensor<6xf32>) -> tensor<1x6x1x1xf32>
    %4 = graph.relu %3 : (tensor<1x6x1x1xf32>) -> tensor<1x6x1x1xf32>
    %5 = graph.weight "5eed000000000003" : tensor<18x6x1x1xf32>
    %6 = graph.weight "5eed000000000004" : tensor<18xf32>
    %7 = graph.conv %4, %5, %6 {kernel = [1, 1], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x6x1x1xf32>, tensor<18x6x1x1xf32>, tensor<18xf32>) -> tensor<1x18x1x1xf32>
    %8 = graph.hardsigmoid %7 {alpha = 0.2, beta = 0.5} : (tensor<1x18x1x1xf32>) -> tensor<1x18x1x1xf32>
    %9 = graph.mul %x, %8 : (tensor<1x18x6x7xf32>, tensor<1x18x1x1xf32>) -> tensor<1x18x6x7xf32>
    func.return %9 : tensor<1x18x6x7xf32>
  }
}
