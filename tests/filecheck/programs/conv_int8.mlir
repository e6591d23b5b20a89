// A channels-last convolution of bytes with a packed weight.

// RUN-LEVELS: seed=86

builtin.module {
  func.func @main(%x: tensor<1x8x8x8xi8>) -> tensor<1x6x6x5xi32> {
    %0 = graph.weight "5eed000000000001" : tensor<144x5xi8>
    %1 = graph.conv2d %x, %0 {kernel = [3, 3], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], channels = 8} : (tensor<1x8x8x8xi8>, tensor<144x5xi8>) -> tensor<1x6x6x5xi32>
    func.return %1 : tensor<1x6x6x5xi32>
  }
}
