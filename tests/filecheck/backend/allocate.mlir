// Buffers get addresses one behind the other, aligned; loops with multi-buffers get rings.

// RUN: stepwell-opt %s --split-input-file -p 'allocate{target=tiny}' --verify-diagnostics | filecheck %s
// RUN: not stepwell-opt %s -p allocate 2>&1 | filecheck %s --check-prefix NONE
// NONE: allocate: allocate: needs a target (found none); give one with --target, for example --target edge

// CHECK-LABEL: npu.kernel @two(gm) l1=352 ub=128 ids=0 slots=1 {
npu.kernel @two(gm) l1=0 ub=0 ids=0 slots=1 {
  // A buffer outside all loops has one iteration, so one slot.
  %a = npu.buffer l1 100 x 2
  // CHECK-NEXT: npu.loop count=2 ring=1 {
  npu.loop count=2 {
    %b = npu.buffer l1 50 x 2
    %d = npu.buffer l0a 64 x 2
    // CHECK-NEXT: npu.loop count=2 {
    npu.loop count=2 {
      %c = npu.buffer ub 100 x 1
      // CHECK-NEXT: npu.fill dst=r28 space=l1
      npu.fill dst=%a space=l1 n2=4 esize=2
      // CHECK-NEXT: npu.fill dst=128 + 64*i1 + r28 + ring(1, -1, 2)*64 space=l1
      npu.fill dst=%b[-1] + 64*i1 space=l1 n2=4 esize=2
      // CHECK-NEXT: npu.fill dst=r29 space=ub
      npu.fill dst=%c space=ub n2=4 esize=2
      // CHECK-NEXT: npu.feed_a dst=ring(1, 0, 2)*64 src=r28
      npu.feed_a dst=%d src=%a m=1 k=4 ld=4 pitch=8 dtype=f16
    }
    // CHECK: npu.loop count=3 ring=2 {
    npu.loop count=3 {
      %e = npu.buffer l1 32 x 3
      // CHECK-NEXT: npu.fill dst=256 + r28 + ring(2, 0, 3)*32 space=l1
      npu.fill dst=%e space=l1 n2=4 esize=2
    }
  }
}
