// Windows that do not fit on chip are taken in parts; those of many taps are loops.

// RUN-LEVELS: seed=91; tolerance=20

builtin.module {
  func.func @main(%x: tensor<2x20x90x50xf32>, %y: tensor<1x3x20000xf16>, %z: tensor<1x5x60x60xf32>) -> (tensor<2x20x1x1xf32>, tensor<1x3x1xf16>, tensor<1x5x17x17xf32>) {
    %0 = graph.global_average_pool %x : (tensor<2x20x90x50xf32>) -> tensor<2x20x1x1xf32>
    %1 = graph.global_max_pool %y : (tensor<1x3x20000xf16>) -> tensor<1x3x1xf16>
    %2 = graph.avg_pool %z {kernel = [20, 30], strides = [3, 3], pads = [5, 10, 4, 10], dilations = [1, 1]} : (tensor<1x5x60x60xf32>) -> tensor<1x5x17x17xf32>
    func.return %0, %1, %2 : tensor<2x20x1x1xf32>, tensor<1x3x1xf16>, tensor<1x5x17x17xf32>
  }
}
