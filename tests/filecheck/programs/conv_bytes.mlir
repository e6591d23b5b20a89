// Convolutions of bytes: whole, in groups, by channel; exact.

// RUN-LEVELS: seed=98

builtin.module {
  func.func @main(%x: tensor<1x6x9x8xi8>, %b: tensor<4xi32>) -> (tensor<1x4x9x8xi32>, tensor<1x4x7x6xi32>, tensor<1x12x9x8xi32>) {
    %0 = graph.weight "5eed000000000001" : tensor<4x6x3x3xi8>
    %1 = graph.weight "5eed000000000002" : tensor<4x3x3x3xi8>
    %2 = graph.weight "5eed000000000003" : tensor<12x1x3x3xi8>
    %3 = graph.conv %x, %0, %b {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<1x6x9x8xi8>, tensor<4x6x3x3xi8>, tensor<4xi32>) -> tensor<1x4x9x8xi32>
    %4 = graph.conv %x, %1 {kernel = [3, 3], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 2} : (tensor<1x6x9x8xi8>, tensor<4x3x3x3xi8>) -> tensor<1x4x7x6xi32>
    %5 = graph.conv %x, %2 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 6} : (tensor<1x6x9x8xi8>, tensor<12x1x3x3xi8>) -> tensor<1x12x9x8xi32>
    func.return %3, %4, %5 : tensor<1x4x9x8xi32>, tensor<1x4x7x6xi32>, tensor<1x12x9x8xi32>
  }
}
