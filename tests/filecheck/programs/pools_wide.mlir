// Rows that do not fit on chip are cut.

// RUN-LEVELS: seed=92; targets=tiny; tolerance=4

builtin.module {
  func.func @main(%x: tensor<1x1x3x3000xf32>) -> (tensor<1x1x3x1500xf32>, tensor<1x1x3x1001xf32>, tensor<1x1x1x999xf32>) {
    %0 = graph.max_pool %x {kernel = [1, 2], strides = [1, 2], pads = [0, 0, 0, 0], dilations = [1, 1]} : (tensor<1x1x3x3000xf32>) -> tensor<1x1x3x1500xf32>
    %1 = graph.avg_pool %x {kernel = [3, 4], strides = [1, 3], pads = [1, 2, 1, 2], dilations = [1, 1]} : (tensor<1x1x3x3000xf32>) -> tensor<1x1x3x1001xf32>
    %2 = graph.lp_pool %x {kernel = [3, 4], strides = [1, 3], pads = [0, 0, 0, 0], dilations = [1, 1], p = 2} : (tensor<1x1x3x3000xf32>) -> tensor<1x1x1x999xf32>
    func.return %0, %1, %2 : tensor<1x1x3x1500xf32>, tensor<1x1x3x1001xf32>, tensor<1x1x1x999xf32>
  }
}
