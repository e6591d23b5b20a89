// What the verifier demands of a tile kernel, by message.

// RUN: stepwell-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: tile.kernel: arguments live in gm with one slot (found !tile.buffer<4xf16, ub>)
tile.kernel @k(%x: !tile.buffer<4xf16, ub>) {
  
}

// -----

// CHECK: tile.kernel: arguments are buffers or index scalars (found i32)
tile.kernel @k(%x: i32) {
  
}

// -----

// CHECK: tile.alloc: a buffer lives on chip; buffers in gm are arguments (found gm)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %t = tile.alloc : !tile.buffer<4xf16, gm>
}

// -----

// CHECK: tile.for: the step is 1 or more (found 0)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  tile.for %i = 0 to "4" step 0 {}
}

// -----

// CHECK: tile.for: loops nest at most 5 deep (found 6)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  tile.for %i0 = 0 to "4" step 1 {
  tile.for %i1 = 0 to "4" step 1 {
  tile.for %i2 = 0 to "4" step 1 {
  tile.for %i3 = 0 to "4" step 1 {
  tile.for %i4 = 0 to "4" step 1 {
  tile.for %i5 = 0 to "4" step 1 {
  }
  }
  }
  }
  }
  }
}

// -----

// CHECK: tile.for: i0 uses i0; there are core only (there are no indices after `at`)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  tile.for %i = 0 to "i0" step 1 {}
}

// -----

// CHECK: tile.load: i1 uses i1; there are i0 to i0 (the indices after `at`) and core
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.for %i = 0 to "4" step 1 {
    tile.load %u["0" : 16, 1], %x["i1" : 64, 1] extents ["16", "16"] at (%i)
  }
}

// -----

// CHECK: tile.fill: ring(0, 0, 2)*8 has a ring; slots are chosen by the buffer's type
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.fill %u["ring(0, 0, 2)*8" : 16, 1] extents ["1", "16"]
}

// -----

// CHECK: tile.load: the boxes are dst, src (found 1)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.load %u["0" : 16, 1] extents ["16", "16"]
}

// -----

// CHECK: tile.map: the boxes are dst, a, [b], [c] (found 1)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.map %u["0" : 16, 1] extents ["16", "16"] fields {fn = "relu"}
}

// -----

// CHECK: tile.feed_a: there are 2 extents (found 1)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %a = tile.alloc : !tile.buffer<16x64xf16, l1>
  %f = tile.alloc : !tile.buffer<16x64xf16, l0a>
  tile.feed_a %f["0" : 1], %a["0" : 1] extents ["16"]
}

// -----

// CHECK: tile.map: there are 1 to 3 extents (found 4)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.map %u["0" : 0, 0, 16, 1], %u["0" : 0, 0, 16, 1] extents ["1", "1", "1", "1"] fields {fn = "relu"}
}

// -----

// CHECK: tile.load: src lives in gm (found ub)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.load %u["0" : 16, 1], %u["0" : 16, 1] extents ["16", "16"]
}

// -----

// CHECK: tile.move: dst lives in l1 (found gm)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.move %x["0" : 64, 1], %u["0" : 16, 1] extents ["16", "16"]
}

// -----

// CHECK: tile.load: src has the type of dst, f32 (found f16)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %v = tile.alloc : !tile.buffer<16x16xf32, ub>
  tile.load %v["0" : 16, 1], %x["0" : 64, 1] extents ["16", "16"]
}

// -----

// CHECK: tile.load: dst has 2 strides (found 1: [1])
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.load %u["0" : 1], %x["0" : 64, 1] extents ["16", "16"]
}

// -----

// CHECK: tile.load: the offset of src is a sum (found clamp(i0, 4))
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.for %i = 0 to "4" step 1 {
    tile.load %u["0" : 16, 1], %x["clamp(i0, 4)" : 64, 1] extents ["16", "16"] at (%i)
  }
}

// -----

// CHECK: tile.load: dst reaches elements 0 to 263 of a buffer of 256
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.load %u["0" : 16, 1], %x["0" : 64, 1] extents ["16", "24"]
}

// -----

// CHECK: tile.load: src reaches elements -64 to 911 of a buffer of 4096
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.load %u["0" : 16, 1], %x["-64" : 64, 1] extents ["16", "16"]
}

// -----

// CHECK: tile.map: a names a slot of at most 1 iterations ago (found 2)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.map %u["0" : 16, 1], %u["0" : 16, 1] ago 2 extents ["16", "16"] fields {fn = "relu"}
}

// -----

// CHECK: tile.map: a has earlier slots only if its buffer belongs to a loop (found ago 1)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.map %u["0" : 16, 1], %u["0" : 16, 1] ago 1 extents ["16", "16"] fields {fn = "relu"}
}

// -----

// CHECK: tile.map: this function has 1 operands (found 2 boxes)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.map %u["0" : 16, 1], %u["0" : 16, 1], %u["0" : 16, 1] extents ["16", "16"] fields {fn = "relu"}
}

// -----

// CHECK: tile.map: fn is one of copy, add, {{.*}} (found 99)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.map %u["0" : 16, 1], %u["0" : 16, 1] extents ["16", "16"] fields {fn = "99"}
}

// -----

// CHECK: tile.map: fn is a constant (found i0)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.for %i = 0 to "4" step 1 {
    tile.map %u["0" : 16, 1], %u["0" : 16, 1] extents ["16", "16"] fields {fn = "i0"} at (%i)
  }
}

// -----

// CHECK: tile.mma: sums of f16 products are f32 (found i32)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %p = tile.alloc : !tile.buffer<16x64xf16, l0a>
  %q = tile.alloc : !tile.buffer<64x16xf16, l0b>
  %c = tile.alloc : !tile.buffer<16x16xi32, l0c>
  tile.mma %c["0" : 16, 1], %p["0" : 64, 1], %q["0" : 16, 1] extents ["16", "16", "64"]
}

// -----

// CHECK: tile.mma: a and b are of one type (found f16 and bf16)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %p = tile.alloc : !tile.buffer<16x64xf16, l0a>
  %q = tile.alloc : !tile.buffer<64x16xbf16, l0b>
  %c = tile.alloc : !tile.buffer<16x16xf32, l0c>
  tile.mma %c["0" : 16, 1], %p["0" : 64, 1], %q["0" : 16, 1] extents ["16", "16", "64"]
}

// -----

// CHECK: tile.mma: rows of dst are a multiple of 16 elements apart (found 8)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %p = tile.alloc : !tile.buffer<16x64xf16, l0a>
  %q = tile.alloc : !tile.buffer<64x16xf16, l0b>
  %c = tile.alloc : !tile.buffer<16x16xf32, l0c>
  tile.mma %c["0" : 8, 1], %p["0" : 64, 1], %q["0" : 16, 1] extents ["16", "8", "64"]
}

// -----

// CHECK: tile.feed_b: rows of dst are a multiple of 16 elements apart (found 20)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %a = tile.alloc : !tile.buffer<16x64xf16, l1>
  %q = tile.alloc : !tile.buffer<64x32xf16, l0b>
  tile.feed_b %q["0" : 20, 1], %a["0" : 64, 1] extents ["16", "20"]
}

// -----

// CHECK: tile.feed_a: dst is of f16, bf16, f32, i8, u8 (found i32)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %a = tile.alloc : !tile.buffer<16x64xi32, l1>
  %p = tile.alloc : !tile.buffer<16x64xi32, l0a>
  tile.feed_a %p["0" : 64, 1], %a["0" : 64, 1] extents ["16", "64"]
}

// -----

// CHECK: tile.fold: dst and src have the same strides (found [16, 1] and [32, 1])
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %c = tile.alloc : !tile.buffer<16x16xf32, l0c>
  %d = tile.alloc : !tile.buffer<16x32xf32, l0c>
  tile.fold %c["0" : 16, 1], %d["0" : 32, 1] extents ["16", "16"]
}

// -----

// CHECK: tile.drain: bias is a contiguous row, its last stride is 1 (found [2])
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %c = tile.alloc : !tile.buffer<16x16xf32, l0c>
  %d = tile.alloc : !tile.buffer<16x32xf32, l0c>
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  %v = tile.alloc : !tile.buffer<16x16xf32, ub>
  tile.drain %u["0" : 16, 1], %c["0" : 16, 1], %v["0" : 2] extents ["16", "16"]
}

// -----

// CHECK: tile.drain: bias is of f32 (found f16)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %c = tile.alloc : !tile.buffer<16x16xf32, l0c>
  %d = tile.alloc : !tile.buffer<16x32xf32, l0c>
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.drain %u["0" : 16, 1], %c["0" : 16, 1], %u["0" : 1] extents ["16", "16"]
}

// -----

// CHECK: tile.reduce: a reduction that is cut (first or last is not 1) has a state
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %u = tile.alloc : !tile.buffer<16x16xf16, ub>
  tile.reduce %u["0" : 1, 0, 0], %u["0" : 16, 1, 0] extents ["16", "16", "1"] fields {first = "0", fn = "sum"}
}

// -----

// CHECK: tile.reduce: the lanes of i32 are i32 (found f32)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %v = tile.alloc : !tile.buffer<16x16xf32, ub>
  %w = tile.alloc : !tile.buffer<16x16xi32, ub>
  tile.reduce %w["0" : 1, 0, 0], %w["0" : 16, 1, 0], %v["0" : 1] extents ["16", "16", "1"] fields {fn = "sum"}
}

// -----

// CHECK: tile.grid: there is a size for each coordinate but the first, 1 or more (found [0])
tile.kernel @k() {
  %i, %j = tile.grid 0
}

// -----

// CHECK: tile.grid: a grid stands outside all loops
tile.kernel @k() {
  tile.for %m = 0 to "4" step 1 {
    %i, %j = tile.grid 2
  }
}

// -----

// CHECK: tile.scalar: a scalar is one of min, max, div (found mod)
tile.kernel @k() {
  %r = tile.scalar mod "core", "2"
}

// -----

// CHECK: tile.scalar: i0 uses i0; there are core only (there are no indices after `at`)
tile.kernel @k() {
  %r = tile.scalar div "i0", "2"
}

// -----

// CHECK: tile.feed_q: zero points of i4 are i8 (found u8)
tile.kernel @k(%x: !tile.buffer<64x64xf16, gm>) {
  %w = tile.alloc : !tile.buffer<16x64xi4, l1>
  %s = tile.alloc : !tile.buffer<16x2xf32, l1>
  %z = tile.alloc : !tile.buffer<16x2xui8, l1>
  %q = tile.alloc : !tile.buffer<64x16xf16, l0b>
  tile.feed_q %q["0" : 16, 1], %w["0" : 1, 64], %s["0" : 2, 1], %z["0" : 2, 1] extents ["64", "16"] fields {block = "32"}
}

// -----

// CHECK: tile.store: half bytes are loaded, and read by a tile.feed_q (found dst of u4)
tile.kernel @k(%x: !tile.buffer<64x64xui4, gm>) {
  %w = tile.alloc : !tile.buffer<16x64xui4, l1>
  tile.store %x["0" : 64, 1], %w["0" : 64, 1] extents ["16", "64"]
}
