// Pooling over one and three axes, of bytes, with padding that counts beyond which a window reaches.

// RUN-LEVELS: seed=99; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<1x3x6x7x8xf32>, %y: tensor<1x4x9x9xi8>, %z: tensor<1x2x9xf32>) -> (tensor<1x3x4x4x4xf32>, tensor<1x3x4x4x4xf32>, tensor<1x4x4x4xi8>, tensor<1x2x4xf32>, tensor<1x3x5x6x7xf32>, tensor<1x3x1x1x1xf32>) {
    %0 = graph.max_pool %x {kernel = [3, 2, 3], strides = [2, 2, 2], pads = [1, 0, 1, 2, 1, 0], dilations = [1, 1, 1]} : (tensor<1x3x6x7x8xf32>) -> tensor<1x3x4x4x4xf32>
    %1 = graph.avg_pool %x {kernel = [3, 2, 3], strides = [2, 2, 2], pads = [1, 0, 1, 2, 1, 0], dilations = [1, 1, 1]} : (tensor<1x3x6x7x8xf32>) -> tensor<1x3x4x4x4xf32>
    %2 = graph.max_pool %y {kernel = [3, 3], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]} : (tensor<1x4x9x9xi8>) -> tensor<1x4x4x4xi8>
    %3 = graph.avg_pool %z {kernel = [7], strides = [3], pads = [3, 4], dilations = [1], count_include_pad = true, overhang = [1]} : (tensor<1x2x9xf32>) -> tensor<1x2x4xf32>
    %4 = graph.lp_pool %x {kernel = [2, 2, 2], strides = [1, 1, 1], pads = [0, 0, 0, 0, 0, 0], dilations = [1, 1, 1], p = 3} : (tensor<1x3x6x7x8xf32>) -> tensor<1x3x5x6x7xf32>
    %5 = graph.global_lp_pool %x {p = 1} : (tensor<1x3x6x7x8xf32>) -> tensor<1x3x1x1x1xf32>
    func.return %0, %1, %2, %3, %4, %5 : tensor<1x3x4x4x4xf32>, tensor<1x3x4x4x4xf32>, tensor<1x4x4x4xi8>, tensor<1x2x4xf32>, tensor<1x3x5x6x7xf32>, tensor<1x3x1x1x1xf32>
  }
}
