// Sums of bytes over more than 2048 products: exact, in whatever pieces; a matmul, a convolution, groups.

// RUN-LEVELS: seed=211; precision=fp32

func.func @main(%a: tensor<5x4100xi8>, %b: tensor<4100x9xi8>, %x: tensor<1x230x5x6xi8>, %w: tensor<7x230x3x3xi8>, %y: tensor<1x460x4x5xi8>, %g: tensor<6x230x3x3xi8>) -> (tensor<5x9xi32>, tensor<1x7x5x6xi32>, tensor<1x6x4x5xi32>) {
  %0 = graph.matmul %a, %b : (tensor<5x4100xi8>, tensor<4100x9xi8>) -> tensor<5x9xi32>
  %1 = graph.conv %x, %w {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<1x230x5x6xi8>, tensor<7x230x3x3xi8>) -> tensor<1x7x5x6xi32>
  %2 = graph.conv %y, %g {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 2} : (tensor<1x460x4x5xi8>, tensor<6x230x3x3xi8>) -> tensor<1x6x4x5xi32>
  func.return %0, %1, %2 : tensor<5x9xi32>, tensor<1x7x5x6xi32>, tensor<1x6x4x5xi32>
}
