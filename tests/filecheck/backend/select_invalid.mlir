// What no instruction can do is said in one line that names the op.

// RUN: not stepwell-opt %s --split-input-file -p select 2>&1 | filecheck %s --check-prefix FIRST
// FIRST: select: {{.*}}tile.load{{.*}}: the last stride of dst is 1 (found [64, 2])

tile.kernel @inner(%x: !tile.buffer<64x64xf16, gm>) {
  %t = tile.alloc : !tile.buffer<16x64xf16, ub>
  tile.load %t["0" : 64, 2], %x["0" : 64, 1] extents ["16", "16"]
}
