// Kernels of every form become loops over tiles of a small chip.

// RUN: stepwell-opt %s --target tiny -p graph-to-tile --verify-each | filecheck %s
// RUN: stepwell-opt %s --target edge -p graph-to-tile | filecheck %s --check-prefix CORES

builtin.module {
  // What does not vary is loaded before the loop; the edges inside stay on chip, in their own types.
  // CHECK-LABEL: tile.kernel @vector(%0: !tile.buffer<64000xf16, gm>, %1: !tile.buffer<64xf32, gm>, %2: !tile.buffer<64000xf16, gm>) {
  // CHECK-NEXT:    %[[V:.*]] = tile.alloc : !tile.buffer<64xf32, ub>
  // CHECK-NEXT:    tile.load %[[V]]["0" : 1], %1["0" : 1] extents ["64"]
  // CHECK-NEXT:    tile.for %[[I:.*]] = 0 to "1000" step 32 {
  // CHECK-NEXT:      %[[X:.*]] = tile.alloc : !tile.buffer<32x64xf16, ub, 2>
  // CHECK-NEXT:      tile.load %[[X]]["0" : 64, 1], %0["64*i0" : 64, 1] extents ["clamp(1000 - i0, 32)", "64"] at (%[[I]])
  // CHECK-NEXT:      %[[S:.*]] = tile.alloc : !tile.buffer<32x64xf32, ub>
  // CHECK-NEXT:      tile.map %[[S]]["0" : 64, 1], %[[X]]["0" : 64, 1], %[[V]]["0" : 0, 1] {{.*}} fields {fn = "add"}
  // CHECK-NEXT:      %[[Y:.*]] = tile.alloc : !tile.buffer<32x64xf16, ub, 2>
  // CHECK-NEXT:      tile.map %[[Y]]["0" : 64, 1], %[[S]]["0" : 64, 1] {{.*}} fields {fn = "relu"}
  // CHECK-NEXT:      tile.store %2["64*i0" : 64, 1], %[[Y]]["0" : 64, 1]
  // CHECK-NEXT:    }
  // The rows are shared out over the cores of a larger chip.
  // CORES-LABEL: tile.kernel @vector
  // CORES:         tile.for {{.*}} = 0 to "clamp(1000 - {{.*}}*core, {{.*}})"
  func.func private @vector(%x: tensor<1000x64xf16>, %v: tensor<64xf32>) -> tensor<1000x64xf16> {
    %0 = graph.add %x, %v : (tensor<1000x64xf16>, tensor<64xf32>) -> tensor<1000x64xf32>
    %1 = graph.relu %0 : (tensor<1000x64xf32>) -> tensor<1000x64xf16>
    func.return %1 : tensor<1000x64xf16>
  }

  // All of a stands in L1, its rows in whole blocks of 16; columns of b come 16 at a time, and k in steps.
  // CHECK-LABEL: tile.kernel @matmul
  // CHECK-NEXT:    %[[A:.*]] = tile.alloc : !tile.buffer<37x64xf16, l1>
  // CHECK-NEXT:    tile.load %[[A]]["0" : 64, 1], %0["0" : 50, 1] extents ["37", "50"]
  // CHECK-NEXT:    tile.for %[[I:.*]] = 0 to "20" step 16 {
  // CHECK:           tile.load %[[B:.*]]["0" : 16, 1], %1["i0" : 20, 1] extents ["50", "clamp(20 - i0, 16)"] at (%[[I]])
  // CHECK-NEXT:      %[[C:.*]] = tile.alloc : !tile.buffer<48x16xf32, l0c, 2>
  // CHECK-NEXT:      tile.for %[[K:.*]] = 0 to "50" step 32 {
  // CHECK:             tile.feed_a %[[A0:.*]]["0" : 32, 1], %[[A]]["i0" : 64, 1] extents ["37", "clamp(50 - i0, 32)"] at (%[[K]])
  // CHECK-NEXT:        tile.feed_b %[[B0:.*]]["0" : 16, 1], %[[B]]["16*i0" : 16, 1] extents ["clamp(50 - i0, 32)", "clamp(20 - i1, 16)"]
  // CHECK-NEXT:        tile.mma %[[C]]["0" : 16, 1], %[[A0]]["0" : 32, 1], %[[B0]]["0" : 16, 1] {{.*}} fields {init = "clamp(1 - i1, 1)"}
  // CHECK-NEXT:      }
  // CHECK:           tile.drain %[[U:.*]]["0" : 16, 1], %[[C]]["0" : 16, 1]
  // CHECK-NEXT:      tile.store %2["i0" : 20, 1], %[[U]]["0" : 16, 1]
  // CHECK-NEXT:    }
  func.func private @matmul(%a: tensor<37x50xf16>, %b: tensor<50x20xf16>) -> tensor<37x20xf16> {
    %0 = graph.matmul %a, %b : (tensor<37x50xf16>, tensor<50x20xf16>) -> tensor<37x20xf16>
    func.return %0 : tensor<37x20xf16>
  }

  // A panel of image rows stands in L1, here all of them, and im2col cuts the patches: k in steps, the sum begun by the
  // first of them.
  // CHECK-LABEL: tile.kernel @conv2d
  // CHECK-NEXT:    %[[W:.*]] = tile.alloc : !tile.buffer<144x32xf16, l1>
  // CHECK-NEXT:    tile.load %[[W]]["0" : 32, 1], %1["0" : 24, 1] extents ["144", "24"]
  // CHECK-NEXT:    %[[P:.*]] = tile.alloc : !tile.buffer<13x17x16xf16, l1>
  // CHECK-NEXT:    tile.load %[[P]]["0" : 1], %0["0" : 1] extents ["3536"]
  // CHECK-NEXT:    tile.for %[[M:.*]] = 0 to "221" step 64 {
  // CHECK:           tile.for %[[K:.*]] = 0 to "144" step 32 {
  // CHECK:             tile.im2col %[[A0:.*]]["0" : 32, 1], %[[P]]["0" : 272, 16, 1] extents ["clamp(221 - i0, 64)", "clamp(144 - i1, 32)"] fields {{.*}} k0 = "i1", {{.*}} m0 = "i0", {{.*}} at (%[[M]], %[[K]])
  // CHECK-NEXT:        tile.feed_b %[[B0:.*]]["0" : 32, 1], %[[W]]["32*i0" : 32, 1] extents ["clamp(144 - i0, 32)", "24"] at (%[[K]])
  // CHECK-NEXT:        tile.mma {{.*}} fields {init = "clamp(1 - i1, 1)"} at (%[[M]], %[[K]])
  // CHECK-NEXT:      }
  // CHECK:           tile.drain
  // CHECK-NEXT:      tile.store %2["24*i0" : 24, 1]
  // CHECK-NEXT:    }
  func.func private @conv2d(%x: tensor<1x13x17x16xf16>, %w: tensor<144x24xf16>) -> tensor<1x13x17x24xf16> {
    %0 = graph.conv2d %x, %w {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], channels = 16} : (tensor<1x13x17x16xf16>, tensor<144x24xf16>) -> tensor<1x13x17x24xf16>
    func.return %0 : tensor<1x13x17x24xf16>
  }

  // A tile is loaded as the source lies, turned in UB, and stored as the result lies.
  // CHECK-LABEL: tile.kernel @transpose
  // CHECK-NEXT:    tile.for %[[J:.*]] = 0 to "130" step 44 {
  // CHECK-NEXT:      tile.for %[[I:.*]] = 0 to "100" step 50 {
  // CHECK:             tile.load %[[X:.*]]["0" : 44, 1], %0["i0 + 130*i1" : 130, 1] extents ["50", "clamp(130 - i0, 44)"] at (%[[J]], %[[I]])
  // CHECK:             tile.map %[[Y:.*]]["0" : 50, 1], %[[X]]["0" : 1, 44] extents ["clamp(130 - i0, 44)", "50"] at (%[[J]])
  // CHECK-NEXT:        tile.store %1["100*i0 + i1" : 100, 1], %[[Y]]["0" : 50, 1] extents ["clamp(130 - i0, 44)", "50"] at (%[[J]], %[[I]])
  // CHECK-NEXT:      }
  // CHECK-NEXT:    }
  func.func private @transpose(%x: tensor<100x130xf16>) -> tensor<130x100xf16> {
    %0 = graph.transpose %x {perm = [1, 0]} : (tensor<100x130xf16>) -> tensor<130x100xf16>
    func.return %0 : tensor<130x100xf16>
  }
}
