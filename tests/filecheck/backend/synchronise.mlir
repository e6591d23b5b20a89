// Tokens between the engines that share a buffer.

// RUN: stepwell-opt %s -p synchronise | filecheck %s
// RUN: stepwell-opt %s -p synchronise,allocate --target tiny | filecheck %s --check-prefix ALLOC

// CHECK-LABEL: npu.kernel @one(gm, gm) l1=0 ub=0 ids=1 slots=1 {
// CHECK-NEXT: npu.grant src=store dst=load id=r30 n=2
// CHECK-NEXT: npu.loop count=1000 step=128 {
// CHECK-NEXT:   %t = npu.buffer ub 16384 x 2
// CHECK-NEXT:   npu.wait src=store dst=load id=r30
// CHECK-NEXT:   npu.load dst=%t
// CHECK-NEXT:   npu.set src=load dst=vector id=r30
// CHECK-NEXT:   npu.wait src=load dst=vector id=r30
// CHECK-NEXT:   npu.vmap fn=relu dst=%t a=%t
// CHECK-NEXT:   npu.set src=vector dst=store id=r30
// CHECK-NEXT:   npu.wait src=vector dst=store id=r30
// CHECK-NEXT:   npu.store
// CHECK-NEXT:   npu.set src=store dst=load id=r30
// CHECK-NEXT: }
// CHECK-NEXT: npu.wait src=store dst=load id=r30
// CHECK-NEXT: npu.wait src=store dst=load id=r30
// CHECK-NEXT: }
npu.kernel @one(gm, gm) l1=0 ub=0 ids=0 slots=1 {
  npu.loop count=1000 step=128 {
    %t = npu.buffer ub 16384 x 2
    npu.load dst=%t space=ub src=r0 n4=64 esize=2 s4=2
    npu.vmap fn=relu dst=%t a=%t n2=64 d2=2 a2=2 td=f16 ta=f16
    npu.store dst=r1 src=%t space=ub n4=64 esize=2 d4=2
  }
}

// A buffer of the kernel, used in a loop: inside, the engines hand it over every iteration; the loop as a whole comes after the load.
// CHECK-LABEL: npu.kernel @inner(gm, gm)
// CHECK-NEXT: npu.grant src=store dst=vector id=r30 n=1
// CHECK-NEXT: %t = npu.buffer ub 64 x 1
// CHECK-NEXT: npu.load
// CHECK-NEXT: npu.set src=load dst=store id=r30
// CHECK-NEXT: npu.set src=load dst=vector id=r30
// CHECK-NEXT: npu.wait src=load dst=vector id=r30
// CHECK-NEXT: npu.wait src=load dst=store id=r30
// CHECK-NEXT: npu.loop count=4 {
// CHECK-NEXT:   npu.wait src=store dst=vector id=r30
// CHECK-NEXT:   npu.vmap
// CHECK-NEXT:   npu.set src=vector dst=store id=r30
// CHECK-NEXT:   npu.wait src=vector dst=store id=r30
// CHECK-NEXT:   npu.store
// CHECK-NEXT:   npu.set src=store dst=vector id=r30
// CHECK-NEXT: }
// CHECK: npu.wait src=store dst=vector id=r30
npu.kernel @inner(gm, gm) l1=0 ub=0 ids=0 slots=1 {
  %t = npu.buffer ub 64 x 1
  npu.load dst=%t space=ub src=r0 n4=32 esize=2 s4=2
  npu.loop count=4 {
    npu.vmap fn=neg dst=%t a=%t n2=32 d2=2 a2=2 td=f16 ta=f16
    npu.store dst=64*i0 + r1 src=%t space=ub n4=32 esize=2 d4=2
  }
}

// The store of an iteration reads what was computed one iteration ago: it waits for a token of the iteration before.
// CHECK-LABEL: npu.kernel @skewed(gm)
// CHECK-NEXT: npu.grant
// CHECK-NEXT: npu.grant
// CHECK-NEXT: npu.loop count=4 add=1 {
// CHECK-NEXT:   %t = npu.buffer ub 64 x 2
// CHECK-NEXT:   npu.wait src=vector dst=store id=r30
// CHECK-NEXT:   npu.store dst=r0 src=%t[-1]
// CHECK-NEXT:   npu.set src=store dst=vector id=r30
// CHECK-NEXT:   npu.wait src=store dst=vector id=r30
// CHECK-NEXT:   npu.iota dst=%t
// CHECK-NEXT:   npu.set src=vector dst=store id=r30
npu.kernel @skewed(gm) l1=0 ub=0 ids=0 slots=1 {
  npu.loop count=4 add=1 {
    %t = npu.buffer ub 64 x 2
    npu.store dst=r0 src=%t[-1] space=ub n4=clamp(32*i0, 32) esize=2 d4=2
    npu.iota dst=%t n2=clamp(128 - 32*i0, 32) d2=2 td=f16
  }
}

// An argument that is loaded and stored is ordered like a buffer.
// CHECK-LABEL: npu.kernel @argument(gm)
// CHECK: npu.loop count=4 {
// CHECK: npu.wait src=store dst=load id=r30
// CHECK-NEXT: npu.load
npu.kernel @argument(gm) l1=0 ub=0 ids=0 slots=1 {
  npu.loop count=4 {
    %t = npu.buffer ub 64 x 4
    npu.load dst=%t space=ub src=64*i0 + r0 n4=32 esize=2 s4=2
    npu.store dst=64*i0 + r0 src=%t space=ub n4=32 esize=2 d4=2
  }
}

// ALLOC-LABEL: npu.kernel @one(gm, gm) l1=0 ub=32768 ids=1 slots=1 {
// ALLOC: npu.loop count=1000 step=128 ring=1 {
// ALLOC-NEXT: npu.wait
// ALLOC-NEXT: npu.load dst=r29 + ring(1, 0, 2)*16384 space=ub
// ALLOC-LABEL: npu.kernel @skewed(gm) l1=0 ub=128 ids=1 slots=1 {
// ALLOC: npu.store dst=r0 src=r29 + ring(1, -1, 2)*64 space=ub
