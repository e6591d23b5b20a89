// A window over a whole image is a row of ones times its pixels, in one run of any length; the largest of them is one
// reduction, carried from chunk to chunk; small windows are instructions of their own.

// RUN-LEVELS: seed=187; precision=fp32,fp16
// RUN: stepwell-opt %s --target tiny -p 'stage-graph,stage-tile' | filecheck %s

// CHECK-LABEL: tile.kernel @k2
// CHECK:         tile.fill
// CHECK-NEXT:    tile.feed_a
// CHECK:         tile.mma
// CHECK-NOT:     tile.fold
// CHECK:         tile.map {{.*}} fields {fn = "div"
// CHECK-LABEL: tile.kernel @k3
// CHECK:         tile.mma
// CHECK:         tile.drain
// CHECK-LABEL: tile.kernel @k4
// CHECK-NOT:     tile.mma
// CHECK-LABEL: tile.kernel @k5
// CHECK:         tile.for
// CHECK:           tile.reduce {{.*}} fields {first = "clamp(1 - i0, 1)", fn = "max", last =
// CHECK-LABEL: tile.kernel @k6
// CHECK:         tile.reduce {{.*}} extents ["1", "35", "21"] fields {fn = "max"}

builtin.module {
  func.func @main(%long: tensor<2x49x47x40xf16>, %batch: tensor<3x5x7x21xf32>, %few: tensor<1x3x3x16xf16>, %s: tensor<2x1x1x40xf32>)
      -> (tensor<2x1x1x40xf16>, tensor<3x1x1x21xf32>, tensor<1x1x1x16xf16>, tensor<2x1x1x40xf16>, tensor<3x1x1x21xf32>) {
    %0 = graph.window2d %long {fn = "mean", kernel = [49, 47], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : (tensor<2x49x47x40xf16>) -> tensor<2x1x1x40xf16>
    %1 = graph.mul %0, %s : (tensor<2x1x1x40xf16>, tensor<2x1x1x40xf32>) -> tensor<2x1x1x40xf16>
    %2 = graph.window2d %batch {fn = "sum", kernel = [5, 7], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : (tensor<3x5x7x21xf32>) -> tensor<3x1x1x21xf32>
    %3 = graph.window2d %few {fn = "mean", kernel = [3, 3], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]} : (tensor<1x3x3x16xf16>) -> tensor<1x1x1x16xf16>
    %4 = graph.window2d %long {fn = "max", kernel = [49, 47], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : (tensor<2x49x47x40xf16>) -> tensor<2x1x1x40xf16>
    %5 = graph.relu %4 : (tensor<2x1x1x40xf16>) -> tensor<2x1x1x40xf16>
    %6 = graph.window2d %batch {fn = "max", kernel = [5, 7], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : (tensor<3x5x7x21xf32>) -> tensor<3x1x1x21xf32>
    func.return %1, %2, %3, %5, %6 : tensor<2x1x1x40xf16>, tensor<3x1x1x21xf32>, tensor<1x1x1x16xf16>, tensor<2x1x1x40xf16>, tensor<3x1x1x21xf32>
  }
}
