// A row of a window that does not fit on chip.

// RUN-LEVELS: fails=a panel of rows of a window must fit UB; targets=tiny

builtin.module {
  func.func @main(%x: tensor<1x1x3x3000xf32>) -> tensor<1x1x3x1500xf32> {
    %0 = graph.max_pool %x {kernel = [1, 2], strides = [1, 2], pads = [0, 0, 0, 0], dilations = [1, 1]} : (tensor<1x1x3x3000xf32>) -> tensor<1x1x3x1500xf32>
    func.return %0 : tensor<1x1x3x1500xf32>
  }
}
