// Each tile op becomes its instruction: bytes for elements, hardware indices for loop indices, registers for arguments.
// Each line of this file is a location of its own, so a slot of its own.

// RUN: stepwell-opt %s -p select | filecheck %s

// CHECK-LABEL: npu.kernel @rows(gm, gm, index) l1=0 ub=0 ids=0 slots=9 {
tile.kernel @rows(%x: !tile.buffer<1000x64xf16, gm>, %y: !tile.buffer<1000x64xf16, gm>, %n: index) {
  // CHECK-NEXT: npu.loop count=-128*core + r2 step=256 slot=1 {
  tile.for %m = 0 to "i0 - 128*core" step 256 at (%n) {
    // CHECK-NEXT: %t = npu.buffer ub 16384 x 2
    %t = tile.alloc : !tile.buffer<128x64xf16, ub, 2>
    // CHECK-NEXT: npu.load dst=%t space=ub src=32768*i0 + r0 n3=clamp(-256*i0 + r2, 128) n4=64 esize=2 d3=128 s3=128 s4=2
    tile.load %t["0" : 64, 1], %x["64*i0" : 64, 1] extents ["clamp(i1 - i0, 128)", "64"] at (%m, %n)
    // CHECK-NEXT: npu.vmap fn=add dst=%t + 128 a=%t[-1] b=%t n1=16 n2=64 d1=128 d2=2 a1=128 a2=2 b2=2 td=f16 ta=f16 tb=f16 bimm=0
    tile.map %t["64" : 64, 1], %t["0" : 64, 1] ago 1, %t["0" : 0, 1] extents ["16", "64"] fields {fn = "add"}
    // CHECK-NEXT: npu.vmap fn=clip dst=%t a=%t n2=64 d2=2 a2=2 td=f16 ta=f16 immb=-1.0 immc=1.0
    tile.map %t["0" : 1], %t["0" : 1] extents ["64"] fields {fn = "clip", immb = "-1.0", immc = "1.0"}
    // CHECK-NEXT: npu.store dst=32768*i0 + r1 src=%t space=ub n3=128 n4=64 esize=2 d3=128 d4=2 s3=128
    tile.store %y["64*i0" : 64, 1], %t["0" : 64, 1] extents ["128", "64"] at (%m)
    // CHECK-NEXT: npu.store dst=r1 src=%t space=ub n4=64 esize=2 d4=128
    tile.store %y["0" : 64], %t["0" : 1] extents ["64"]
    // CHECK-NEXT: npu.iota dst=%t n2=64 d2=2 td=f16 base=256*i0 c2=1
    tile.iota %t["0" : 1] extents ["64"] fields {base = "i0", c2 = "1"} at (%m)
    // CHECK-NEXT: npu.loop count=3 add=1 slot=8 {
    tile.for %k = 0 to "3" step 1 add 1 {}
  }
}

// CHECK-LABEL: npu.kernel @matrices()
tile.kernel @matrices() {
  %a = tile.alloc : !tile.buffer<16x64xf16, l1>
  %a0 = tile.alloc : !tile.buffer<16x64xf16, l0a>
  // CHECK: npu.buffer l0b 2048 x 1
  %b0 = tile.alloc : !tile.buffer<64x16xf16, l0b>
  // 20 columns are stored as 32.
  // CHECK-NEXT: npu.buffer l0c 2048 x 1
  %c = tile.alloc : !tile.buffer<16x20xf32, l0c>
  %bias = tile.alloc : !tile.buffer<20xf32, ub>
  %u = tile.alloc : !tile.buffer<16x20xf16, ub>
  %r = tile.alloc : !tile.buffer<20xf32, ub>
  // CHECK: npu.fill dst=%a space=l1 n1=16 n2=64 esize=2 d1=128
  tile.fill %a["0" : 64, 1] extents ["16", "64"]
  // CHECK-NEXT: npu.feed_a dst=%a0 src=%a m=16 k=64 ld=64 pitch=128 dtype=f16
  tile.feed_a %a0["0" : 64, 1], %a["0" : 64, 1] extents ["16", "64"]
  // CHECK-NEXT: npu.feed_b dst=%b0 src=%a k=64 n=16 ld=16 pitch=128 trans=1 dtype=f16
  tile.feed_b %b0["0" : 16, 1], %a["0" : 1, 64] extents ["64", "16"]
  // CHECK-NEXT: npu.im2col dst=%a0 src=%a m=4 k=36 ld=64 m0=8 k0=0 ow=4 kh=3 kw=3 channels=4 c0=4 ph=1 pw=1 row0=-1 h=4 w=4 row=32 pixel=8 dtype=f16
  tile.im2col %a0["0" : 64, 1], %a["0" : 16, 4, 1] extents ["4", "36"] fields {m0 = "8", k0 = "0", ow = "4", kh = "3", kw = "3", channels = "4", c0 = "4", ph = "1", pw = "1", row0 = "-1", h = "4", w = "4"}
  // CHECK-NEXT: npu.mma dst=%c a=%a0 b=%b0 m=16 n=16 k=64 lda=64 ldb=16 ldc=32 init=1 dtype=f16
  tile.mma %c["0" : 32, 1], %a0["0" : 64, 1], %b0["0" : 16, 1] extents ["16", "16", "64"] fields {init = "1"}
  // CHECK-NEXT: npu.mma_dw dst=%c a=%a0 b=%b0 m=16 groups=1 taps=4 lda=64 ldc=32 dtype=f16
  tile.mma_dw %c["0" : 32, 1], %a0["0" : 64, 1], %b0["0" : 1] extents ["16", "1", "4"]
  // CHECK-NEXT: npu.fold dst=%c src=%c m=16 n=20 ldc=32
  tile.fold %c["0" : 32, 1], %c["0" : 32, 1] extents ["16", "20"]
  // CHECK-NEXT: npu.drain dst=%u space=ub src=%c m=16 n=20 ldc=32 pitch=40 bias=%bias biased=1 act=relu dtype=f16
  tile.drain %u["0" : 20, 1], %c["0" : 32, 1], %bias["0" : 1] extents ["16", "20"] fields {act = "relu"}
  // CHECK-NEXT: npu.vreduce fn=max dst=%r a=%u n0=16 n1=20 d0=4 a0=40 a1=2 td=f32 ta=f16
  tile.reduce %r["0" : 1, 0, 0], %u["0" : 20, 1, 0] extents ["16", "20", "1"] fields {fn = "max"}
  // CHECK-NEXT: npu.move dst=%a src=%u n1=16 n2=20 esize=2 d1=128 s1=40
  tile.move %a["0" : 64, 1], %u["0" : 20, 1] extents ["16", "20"]
}

// Coordinates of the core are in the registers behind the arguments, which a later grid takes again.
// CHECK-LABEL: npu.kernel @grids(gm, gm)
tile.kernel @grids(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  // CHECK-NEXT: npu.div rd=2 a=core b=8 slot=[[GRID:[0-9]+]]
  // CHECK-NEXT: npu.div rd=3 a=core b=2 slot=[[GRID]]
  // CHECK-NEXT: npu.mod rd=3 a=r3 b=4 slot=[[GRID]]
  // CHECK-NEXT: npu.mod rd=4 a=core b=2 slot=[[GRID]]
  %i, %j, %k = tile.grid 4, 2
  %t = tile.alloc : !tile.buffer<64xf16, ub>
  // CHECK: npu.loop count=clamp(64 - 16*r2, 16) step=4
  tile.for %m = 0 to "clamp(64 - 16*i0, 16)" step 4 at (%i) {
    // CHECK-NEXT: npu.load dst=%t space=ub src=512*i0 + r0 + 2048*r2 + 32*r3 + 16*r4 n4=8 esize=2
    tile.load %t["0" : 1], %x["64*i0 + 1024*i1 + 16*i2 + 8*i3" : 1] extents ["8"] at (%m, %i, %j, %k)
  }
  // CHECK: npu.div rd=2 a=core b=2
  // CHECK-NEXT: npu.mod rd=3 a=core b=2
  %p, %q = tile.grid 2
  // CHECK-NEXT: npu.store dst=r1 + 64*r2 + 128*r3 src=%t
  tile.store %y["32*i0 + 64*i1" : 1], %t["0" : 1] extents ["8"] at (%p, %q)
}

// A scalar has a register until the outermost loop that uses it ends.
// CHECK-LABEL: npu.kernel @scalars(gm, gm)
tile.kernel @scalars(%x: !tile.buffer<64x64xf16, gm>, %y: !tile.buffer<64x64xf16, gm>) {
  %t = tile.alloc : !tile.buffer<64xf16, ub>
  // CHECK: npu.loop count=64 step=4
  tile.for %m = 0 to "64" step 4 {
    // CHECK-NEXT: npu.div rd=2 a=5 + 4*i0 b=3
    %q = tile.scalar div "i0 + 5", "3" at (%m)
    // CHECK-NEXT: npu.min rd=3 a=r2 b=clamp(40 - 4*i0, 8)
    %s = tile.scalar min "i0", "clamp(40 - i1, 8)" at (%q, %m)
    // CHECK-NEXT: npu.load dst=%t space=ub src=r0 + 2*r2 n4=r3 esize=2
    tile.load %t["0" : 1], %x["i0" : 1] extents ["i1"] at (%q, %s)
  }
  // CHECK: npu.max rd=2 a=core b=1
  %p = tile.scalar max "core", "1"
  // CHECK-NEXT: npu.store dst=r1 + 64*r2 src=%t
  tile.store %y["32*i0" : 1], %t["0" : 1] extents ["8"] at (%p)
}

// The integers of a feed_q are half bytes: offsets and rows are halved, and what its load moves; its extents are not.
// CHECK-LABEL: npu.kernel @half_bytes(gm)
tile.kernel @half_bytes(%x: !tile.buffer<64x64xui4, gm>) {
  // CHECK: %w = npu.buffer l1 512
  %w = tile.alloc : !tile.buffer<16x64xui4, l1>
  %s = tile.alloc : !tile.buffer<16x2xf16, l1>
  %z = tile.alloc : !tile.buffer<16x2xui8, l1>
  %q = tile.alloc : !tile.buffer<32x16xf16, l0b>
  // CHECK: npu.load dst=%w + 16 space=l1 src=16*core + r0 n3=16 n4=clamp(13 - 16*core, 16) esize=1 d3=32 s3=32 s4=1
  tile.load %w["32" : 64, 1], %x["32*core" : 64, 1] extents ["16", "clamp(25 - 32*core, 31)"]
  // CHECK-NEXT: npu.feed_q dst=%q src=%w + 16 scale=%s zero=%z k=30 n=16 ld=16 pitch=32 spitch=4 zpitch=2 k0=32 block=32 zeros=1 of=u4 ts=f16 dtype=f16
  tile.feed_q %q["0" : 16, 1], %w["32" : 1, 64], %s["0" : 2, 1], %z["0" : 2, 1] extents ["30", "16"] fields {block = "32", k0 = "32"}
}
