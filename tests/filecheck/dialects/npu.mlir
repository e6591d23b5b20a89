// The npu dialect prints as it is read: fields as in assembly, buffers in the place of addresses.

// RUN: stepwell-opt %s | filecheck %s
// RUN: stepwell-opt %s | stepwell-opt | filecheck %s
// RUN: stepwell-opt %s --print-op-generic | stepwell-opt | filecheck %s

// CHECK-LABEL: npu.kernel @symbolic(gm, gm, index) l1=0 ub=0 ids=1 slots=4 {
npu.kernel @symbolic(gm, gm, index) l1=0 ub=0 ids=1 slots=4 {
  // CHECK-NEXT: npu.grant src=store dst=load id=r30 n=2
  npu.grant src=store dst=load id=r30 n=2
  // CHECK-NEXT: npu.mov rd=3 value=16*core + r2
  npu.mov rd=3 value=r2 + 16*core
  // CHECK-NEXT: npu.loop count=r3 step=128 slot=1 {
  npu.loop count=r3 step=128 slot=1 {
    // CHECK-NEXT: %t = npu.buffer ub 16384 x 2
    %t = npu.buffer ub 16384 x 2
    // CHECK-NEXT: npu.wait src=store dst=load id=r30
    npu.wait src=store dst=load id=r30
    // CHECK-NEXT: npu.load dst=%t space=ub src=16384*i0 + r0 n3=clamp(1000 - 128*i0, 128) n4=64 esize=2 d3=128 s3=128 s4=2 slot=2
    npu.load dst=%t space=ub src=r0 + 16384*i0 n3=clamp(1000 - 128*i0, 128) n4=64 esize=2 d3=128 s3=128 s4=2 slot=2
    // CHECK-NEXT: npu.vmap fn=add dst=%t[-1] + 64*i0 a=%t - 4 n2=12 d2=2 a2=2 td=f16 ta=f16 immb=0.5
    npu.vmap fn=add dst=%t[-1] + 64*i0 a=%t - 4 n2=12 d2=2 a2=2 td=f16 ta=f16 immb=0.5
    // CHECK-NEXT: npu.vmap fn=clip dst=%t a=%t n2=12 d2=2 a2=2 td=f16 ta=f16 immb=-inf immc=1.0000000168623835e-16
    npu.vmap fn=clip dst=%t a=%t n2=12 d2=2 a2=2 td=f16 ta=f16 immb=-inf immc=1e-16
    // CHECK-NEXT: npu.store dst=16384*i0 + r1 src=%t space=ub n3=clamp(1000 - 128*i0, 128) n4=64 esize=2 d3=128 d4=2 s3=128
    npu.store dst=r1 + 16384*i0 src=%t space=ub n3=clamp(1000 - 128*i0, 128) n4=64 esize=2 d3=128 d4=2 s3=128
    // CHECK-NEXT: npu.set src=store dst=load id=r30
    npu.set src=store dst=load id=r30
  }
  // CHECK: npu.signal engine=store counter=5
  npu.signal engine=store counter=5
}

// CHECK-LABEL: npu.kernel @addresses() l1=1024 ub=2048 ids=0 slots=1 {
npu.kernel @addresses() l1=1024 ub=2048 ids=0 slots=1 {
  // CHECK-NEXT: npu.loop count=3 ring=2 {
  npu.loop count=3 ring=2 {
    // CHECK-NEXT: npu.fill dst=512 + r28 + ring(2, -1, 2)*256 space=l1 n2=128 esize=2
    npu.fill dst=r28 + 512 + ring(2, -1, 2)*256 space=l1 n2=128 esize=2
  }
}
