// RUN: stepwell-opt %s -p decompose | filecheck %s

builtin.module {
  // CHECK-LABEL: func.func @softmax
  // CHECK-NEXT:    %[[M:.*]] = graph.reduce_max %x {axes = [1], keepdims = true} : (tensor<2x8xf16>) -> tensor<2x1xf32>
  // CHECK-NEXT:    %[[D:.*]] = graph.sub %x, %[[M]] : (tensor<2x8xf16>, tensor<2x1xf32>) -> tensor<2x8xf32>
  // CHECK-NEXT:    %[[E:.*]] = graph.exp %[[D]] : (tensor<2x8xf32>) -> tensor<2x8xf32>
  // CHECK-NEXT:    %[[S:.*]] = graph.reduce_sum %[[E]] {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
  // CHECK-NEXT:    %[[R:.*]] = graph.reciprocal %[[S]] : (tensor<2x1xf32>) -> tensor<2x1xf32>
  // CHECK-NEXT:    %[[Y:.*]] = graph.mul %[[E]], %[[R]] : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf16>
  // CHECK-NEXT:    func.return %[[Y]]
  func.func @softmax(%x: tensor<2x8xf16>) -> tensor<2x8xf16> {
    %0 = graph.softmax %x {axes = [1]} : (tensor<2x8xf16>) -> tensor<2x8xf16>
    func.return %0 : tensor<2x8xf16>
  }

  // A part may have parts: the means of a normalisation are sums.
  // CHECK-LABEL: func.func @layer_norm
  // CHECK-NOT:     graph.reduce_mean
  // CHECK:         graph.reduce_sum
  // CHECK-NOT:     graph.reduce_mean
  // CHECK:         func.return
  func.func @layer_norm(%x: tensor<2x8xf16>, %s: tensor<8xf32>) -> tensor<2x8xf16> {
    %0 = graph.layer_norm %x, %s {axis = 1, epsilon = 1.0e-5} : (tensor<2x8xf16>, tensor<8xf32>) -> tensor<2x8xf16>
    func.return %0 : tensor<2x8xf16>
  }

  // CHECK-LABEL: func.func @conv
  // CHECK:         graph.transpose %x {perm = [0, 2, 3, 1]}
  // CHECK:         graph.conv2d
  // CHECK:         graph.transpose {{.*}} {perm = [0, 3, 1, 2]}
  func.func @conv(%x: tensor<1x3x8x8xf16>, %w: tensor<4x3x3x3xf16>) -> tensor<1x4x6x6xf16> {
    %0 = graph.conv %x, %w {kernel = [3, 3], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x3x8x8xf16>, tensor<4x3x3x3xf16>) -> tensor<1x4x6x6xf16>
    func.return %0 : tensor<1x4x6x6xf16>
  }
}
