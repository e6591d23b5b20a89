// RUN: stepwell-opt %s -p precision | filecheck %s

// Places in an image, and what computes them, are f32: what they are computed of is as exact as it comes.

// CHECK-LABEL: func.func @warp
// CHECK:         graph.conv {{.*}} -> tensor<1x2x5x4xf16>
// CHECK:         graph.add {{.*}}, %{{base.*}} : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32>
// CHECK:         graph.transpose {{.*}} -> tensor<1x5x4x2xf32>
// CHECK:         graph.affine {{.*}} -> tensor<1x5x4x2xf32>
// CHECK:         graph.grid_sample {{.*}} : (tensor<1x3x5x4xf16>, tensor<1x5x4x2xf32>) -> tensor<1x3x5x4xf16>
func.func @warp(%x: tensor<1x3x5x4xf32>) -> tensor<1x3x5x4xf32> {
  %w = graph.constant dense<0.5> : tensor<2x3x1x1xf32>
  %base = graph.constant dense<1.0> : tensor<1x2x5x4xf32>
  %0 = graph.conv %x, %w {kernel = [1, 1], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x3x5x4xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x5x4xf32>
  %1 = graph.add %0, %base : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32>
  %2 = graph.transpose %1 {perm = [0, 2, 3, 1]} : (tensor<1x2x5x4xf32>) -> tensor<1x5x4x2xf32>
  %3 = graph.affine %2 {scale = 0.5, shift = -1.0} : (tensor<1x5x4x2xf32>) -> tensor<1x5x4x2xf32>
  %4 = graph.grid_sample %x, %3 {mode = "linear", padding = "zeros"} : (tensor<1x3x5x4xf32>, tensor<1x5x4x2xf32>) -> tensor<1x3x5x4xf32>
  func.return %4 : tensor<1x3x5x4xf32>
}

// So are those that become rows of a table.

// CHECK-LABEL: func.func @rows
// CHECK:         graph.mul %p, {{.*}} -> tensor<6x2xf32>
// CHECK:         graph.floor {{.*}} -> tensor<6x2xf32>
// CHECK:         graph.gather {{.*}} : (tensor<900x8xf16>, tensor<6x2xi32>) -> tensor<6x2x8xf16>
func.func @rows(%table: tensor<900x8xf32>, %p: tensor<6x2xf32>, %s: tensor<6x1xf32>) -> tensor<6x2x8xf32> {
  %0 = graph.mul %p, %s : (tensor<6x2xf32>, tensor<6x1xf32>) -> tensor<6x2xf32>
  %1 = graph.floor %0 : (tensor<6x2xf32>) -> tensor<6x2xf32>
  %2 = graph.cast %1 : (tensor<6x2xf32>) -> tensor<6x2xi32>
  %3 = graph.gather %table, %2 {axis = 0} : (tensor<900x8xf32>, tensor<6x2xi32>) -> tensor<6x2x8xf32>
  func.return %3 : tensor<6x2x8xf32>
}

// Coordinates are few: a product of more is none of them.

// CHECK-LABEL: func.func @coordinates
// CHECK:         graph.matmul {{.*}} : (tensor<9x8xf16>, tensor<8x3xf16>) -> tensor<9x3xf16>
// CHECK:         graph.matmul {{.*}} : (tensor<9x3xf32>, tensor<3x2xf32>) -> tensor<9x2xf32>
func.func @coordinates(%x: tensor<9x8xf32>) -> tensor<9x2xi32> {
  %w = graph.constant dense<0.5> : tensor<8x3xf32>
  %v = graph.constant dense<0.25> : tensor<3x2xf32>
  %0 = graph.matmul %x, %w : (tensor<9x8xf32>, tensor<8x3xf32>) -> tensor<9x3xf32>
  %1 = graph.matmul %0, %v : (tensor<9x3xf32>, tensor<3x2xf32>) -> tensor<9x2xf32>
  %2 = graph.cast %1 : (tensor<9x2xf32>) -> tensor<9x2xi32>
  func.return %2 : tensor<9x2xi32>
}
