// Depthwise convolution with stride 1 and a clip.

// RUN-LEVELS: seed=38; precision=fp16,fp32; tolerance=2

builtin.module {
  func.func @main(%x: tensor<1x20x11x12xf32>) -> tensor<1x20x11x12xf32> {
    %0 = graph.weight "5eed000000000001" : tensor<20x1x3x3xf32>
    %1 = graph.weight "5eed000000000002" : tensor<20xf32>
    %2 = graph.conv %x, %0, %1 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 20} : (tensor<1x20x11x12xf32>, tensor<20x1x3x3xf32>, tensor<20xf32>) -> tensor<1x20x11x12xf32>
    %3 = graph.clip %2 {lo = 0.0, hi = 6.0} : (tensor<1x20x11x12xf32>) -> tensor<1x20x11x12xf32>
    func.return %3 : tensor<1x20x11x12xf32>
  }
}
