// What follows a pool joins its kernel: a residual, an activation.

// RUN-LEVELS: seed=85; precision=fp16,fp32; tolerance=2

builtin.module {
  func.func @main(%x: tensor<2x17x8x9xf32>, %r: tensor<2x17x4x5xf32>) -> (tensor<2x17x4x5xf32>, tensor<2x17x8x9xf32>) {
    %0 = graph.max_pool %x {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1]} : (tensor<2x17x8x9xf32>) -> tensor<2x17x4x5xf32>
    %1 = graph.add %0, %r : (tensor<2x17x4x5xf32>, tensor<2x17x4x5xf32>) -> tensor<2x17x4x5xf32>
    %2 = graph.relu %1 : (tensor<2x17x4x5xf32>) -> tensor<2x17x4x5xf32>
    %3 = graph.avg_pool %x {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : (tensor<2x17x8x9xf32>) -> tensor<2x17x8x9xf32>
    %4 = graph.sub %3, %x : (tensor<2x17x8x9xf32>, tensor<2x17x8x9xf32>) -> tensor<2x17x8x9xf32>
    func.return %2, %4 : tensor<2x17x4x5xf32>, tensor<2x17x8x9xf32>
  }
}
