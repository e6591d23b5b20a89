// Every op of the tile dialect prints as it is read.

// RUN: stepwell-opt %s | filecheck %s
// RUN: stepwell-opt %s | stepwell-opt | filecheck %s
// RUN: stepwell-opt %s --print-op-generic | stepwell-opt | filecheck %s

// CHECK-LABEL: tile.kernel @ops(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>, %n: index) {
tile.kernel @ops(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>, %n: index) {
  // CHECK-NEXT: %i, %j = tile.grid 4
  %i, %j = tile.grid 4
  // CHECK-NEXT: %p, %q, %s = tile.grid 4, 2
  %p, %q, %s = tile.grid 4, 2
  // CHECK-NEXT: tile.for %l = 0 to "i0 + 2*i1 + i2 + i3 + i4 + i5" step 1 at (%n, %i, %j, %p, %q, %s) {
  tile.for %l = 0 to "i0 + 2*i1 + i2 + i3 + i4 + i5" step 1 at (%n, %i, %j, %p, %q, %s) {}
  // CHECK: %v = tile.scalar div "4 + i0", "3" at (%n)
  %v = tile.scalar div "i0 + 4", "3" at (%n)
  // CHECK-NEXT: %w = tile.scalar max "i0", "0" at (%v)
  %w = tile.scalar max "i0", "0" at (%v)
  // CHECK-NEXT: tile.for %m = 0 to "i0" step 16 at (%n) {
  tile.for %m = 0 to "i0" step 16 at (%n) {
    // CHECK-NEXT: %a = tile.alloc : !tile.buffer<16x64xf16, l1, 2>
    %a = tile.alloc : !tile.buffer<16x64xf16, l1, 2>
    %b = tile.alloc : !tile.buffer<64x16xf16, l1>
    %a0 = tile.alloc : !tile.buffer<16x64xf16, l0a>
    %b0 = tile.alloc : !tile.buffer<64x16xf16, l0b>
    // CHECK: %c = tile.alloc : !tile.buffer<16x16xf32, l0c>
    %c = tile.alloc : !tile.buffer<16x16xf32, l0c>
    %t = tile.alloc : !tile.buffer<16x16xf32, l0c>
    %u = tile.alloc : !tile.buffer<16x16xf16, ub>
    %r = tile.alloc : !tile.buffer<16xf32, ub>
    // CHECK: tile.load %a["0" : 64, 1], %x["64*i0" : 64, 1] extents ["clamp(-i0 + i1, 16)", "64"] at (%m, %n){{$}}
    tile.load %a["0" : 64, 1], %x["64*i0" : 64, 1] extents ["clamp(i1 - i0, 16)", "64"] at (%m, %n)
    // CHECK-NEXT: tile.fill %b["0" : 16, 1] extents ["64", "16"] fields {pattern = "15360"}{{$}}
    tile.fill %b["0" : 16, 1] extents ["64", "16"] fields {pattern = "15360"}
    // CHECK-NEXT: tile.feed_a %a0["0" : 64, 1], %a["0" : 64, 1] ago 1 extents ["16", "64"]{{$}}
    tile.feed_a %a0["0" : 64, 1], %a["0" : 64, 1] ago 1 extents ["16", "64"]
    // CHECK-NEXT: tile.feed_b %b0["0" : 16, 1], %b["0" : 1, 64] extents ["64", "16"]
    tile.feed_b %b0["0" : 16, 1], %b["0" : 1, 64] extents ["64", "16"]
    // CHECK-NEXT: %packed = tile.alloc : !tile.buffer<16x64xi4, l1>
    %packed = tile.alloc : !tile.buffer<16x64xi4, l1>
    // CHECK-NEXT: %scales = tile.alloc : !tile.buffer<16x2xf32, l1>
    %scales = tile.alloc : !tile.buffer<16x2xf32, l1>
    // CHECK-NEXT: tile.feed_q %b0["0" : 16, 1], %packed["0" : 1, 64], %scales["0" : 2, 1] extents ["64", "16"] fields {block = "32", k0 = "i0"} at (%m)
    tile.feed_q %b0["0" : 16, 1], %packed["0" : 1, 64], %scales["0" : 2, 1] extents ["64", "16"] fields {k0 = "i0", block = "32"} at (%m)
    // CHECK-NEXT: tile.im2col %a0["0" : 64, 1], %a["0" : 64, 16, 1] extents ["16", "36"] fields {c0 = "4", channels = "4", h = "1", k0 = "0", kh = "1", kw = "1", m0 = "i0", ow = "4", pad = "-inf", row0 = "0", w = "4"} at (%m)
    tile.im2col %a0["0" : 64, 1], %a["0" : 64, 16, 1] extents ["16", "36"] fields {c0 = "4", channels = "4", h = "1", k0 = "0", kh = "1", kw = "1", m0 = "i0", ow = "4", pad = "-inf", row0 = "0", w = "4"} at (%m)
    // CHECK-NEXT: tile.mma %c["0" : 16, 1], %a0["0" : 64, 1], %b0["0" : 16, 1] extents ["16", "16", "64"] fields {init = "1"}
    tile.mma %c["0" : 16, 1], %a0["0" : 64, 1], %b0["0" : 16, 1] extents ["16", "16", "64"] fields {init = "1"}
    // CHECK-NEXT: tile.mma_dw %c["0" : 16, 1], %a0["0" : 64, 1], %b0["0" : 1] extents ["16", "1", "4"]
    tile.mma_dw %c["0" : 16, 1], %a0["0" : 64, 1], %b0["0" : 1] extents ["16", "1", "4"]
    // CHECK-NEXT: tile.fold %t["0" : 16, 1], %c["0" : 16, 1] extents ["16", "16"] fields {init = "clamp(1 - i0, 1)"} at (%m)
    tile.fold %t["0" : 16, 1], %c["0" : 16, 1] extents ["16", "16"] fields {init = "clamp(1 - i0, 1)"} at (%m)
    // CHECK-NEXT: tile.iota %r["0" : 1] extents ["16"] fields {base = "i0", c2 = "2"} at (%m)
    tile.iota %r["0" : 1] extents ["16"] fields {base = "i0", c2 = "2"} at (%m)
    // CHECK-NEXT: tile.drain %u["0" : 16, 1], %t["0" : 16, 1], %r["0" : 1] extents ["16", "16"] fields {act = "clip", hi = "6.0", lo = "-0.5", scale = "0.125", scaled = "1"}
    tile.drain %u["0" : 16, 1], %t["0" : 16, 1], %r["0" : 1] extents ["16", "16"] fields {act = "clip", hi = "6.0", lo = "-0.5", scale = "0.125", scaled = "1"}
    // CHECK-NEXT: tile.map %u["0" : 16, 1], %u["0" : 16, 1] extents ["16", "16"] fields {fn = "add", immb = "0.5"}
    tile.map %u["0" : 16, 1], %u["0" : 16, 1] extents ["16", "16"] fields {fn = "add", immb = "0.5"}
    // CHECK-NEXT: tile.reduce %r["0" : 1, 0, 0], %u["0" : 16, 1, 0] extents ["16", "16", "1"] fields {fn = "max"}
    tile.reduce %r["0" : 1, 0, 0], %u["0" : 16, 1, 0] extents ["16", "16", "1"] fields {fn = "max"}
    // CHECK-NEXT: tile.move %a["0" : 64, 1], %u["0" : 16, 1] extents ["16", "16"]
    tile.move %a["0" : 64, 1], %u["0" : 16, 1] extents ["16", "16"]
    // CHECK-NEXT: tile.store %y["64*i0" : 64, 1], %u["0" : 16, 1] extents ["16", "16"] at (%m)
    tile.store %y["64*i0" : 64, 1], %u["0" : 16, 1] extents ["16", "16"] at (%m)
  }
  // CHECK: tile.for %k = 0 to "3" step 1 add 1 {
  tile.for %k = 0 to "3" step 1 add 1 {}
}
