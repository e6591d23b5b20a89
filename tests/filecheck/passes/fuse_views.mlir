// A product takes the views of its operands, and of its result, into its kernel: they become strides.

// RUN: stepwell-opt %s --target tiny -p fuse | filecheck %s
// RUN: stepwell-opt %s --target tiny -p fuse,outline-kernels,graph-to-tile | filecheck %s --check-prefix TILE

builtin.module {
  // The heads of attention: [batch, rows, heads, columns] is read and written as it lies.
  // CHECK-LABEL: func.func @heads
  // CHECK-NEXT:    %{{.*}} = graph.kernel(%{{.*}} = %q, %{{.*}} = %k) : (tensor<1x32x4x16xf16>, tensor<1x32x4x16xf16>) -> tensor<1x32x4x32xf16> {
  // CHECK-COUNT-2:   graph.transpose
  // CHECK-NEXT:      graph.matmul
  // CHECK-NEXT:      graph.transpose
  // CHECK-NEXT:      graph.yield
  // CHECK:         func.return
  // TILE-LABEL: tile.kernel @k0
  // TILE:         tile.load {{.*}}, %1["16*i0" : 64, 1]
  // TILE:         tile.load {{.*}}, %0["16*i0" : 64, 1]
  // TILE:         tile.store %2["32*i0" : 128, 1]
  func.func @heads(%q: tensor<1x32x4x16xf16>, %k: tensor<1x32x4x16xf16>) -> tensor<1x32x4x32xf16> {
    %0 = graph.transpose %q {perm = [0, 2, 1, 3]} : (tensor<1x32x4x16xf16>) -> tensor<1x4x32x16xf16>
    %1 = graph.transpose %k {perm = [0, 2, 3, 1]} : (tensor<1x32x4x16xf16>) -> tensor<1x4x16x32xf16>
    %2 = graph.matmul %0, %1 : (tensor<1x4x32x16xf16>, tensor<1x4x16x32xf16>) -> tensor<1x4x32x32xf16>
    %3 = graph.transpose %2 {perm = [0, 2, 1, 3]} : (tensor<1x4x32x32xf16>) -> tensor<1x32x4x32xf16>
    func.return %3 : tensor<1x32x4x32xf16>
  }

  // With two images the axes of batch and head have no common stride: the views stay kernels of their own.
  // CHECK-LABEL: func.func @batches
  // CHECK:         graph.kernel({{.*}}) : (tensor<2x32x4x16xf16>) -> tensor<2x4x32x16xf16>
  // CHECK:         graph.kernel({{.*}}) : (tensor<2x4x32x16xf16>, tensor<2x4x16x32xf16>) -> tensor<2x4x32x32xf16>
  func.func @batches(%q: tensor<2x32x4x16xf16>, %k: tensor<2x4x16x32xf16>) -> tensor<2x4x32x32xf16> {
    %0 = graph.transpose %q {perm = [0, 2, 1, 3]} : (tensor<2x32x4x16xf16>) -> tensor<2x4x32x16xf16>
    %1 = graph.matmul %0, %k : (tensor<2x4x32x16xf16>, tensor<2x4x16x32xf16>) -> tensor<2x4x32x32xf16>
    func.return %1 : tensor<2x4x32x32xf16>
  }

  // A slice is a place to begin at, whoever else uses what it is a slice of.
  // CHECK-LABEL: func.func @slice
  // CHECK:         graph.slice
  // CHECK-NEXT:    graph.matmul
  // CHECK:         graph.kernel({{.*}} = %x)
  func.func @slice(%x: tensor<32x48xf16>, %w: tensor<16x16xf16>) -> (tensor<32x16xf16>, tensor<32x48xf16>) {
    %0 = graph.slice %x {starts = [0, 16], sizes = [32, 16], steps = [1, 1]} : (tensor<32x48xf16>) -> tensor<32x16xf16>
    %1 = graph.matmul %0, %w : (tensor<32x16xf16>, tensor<16x16xf16>) -> tensor<32x16xf16>
    %2 = graph.relu %x : (tensor<32x48xf16>) -> tensor<32x48xf16>
    func.return %1, %2 : tensor<32x16xf16>, tensor<32x48xf16>
  }
}
