// A memory that overflows is an error with every buffer in it.

// RUN: not stepwell-opt %s -p allocate --target tiny 2>&1 | filecheck %s
// CHECK: allocate: npu.kernel{{.*}} @large: l0b of tiny has 8192 bytes (found 12288: %w 2 × 6144) and ub of tiny has 32768 bytes (found 40000: %t 2 × 20000); use smaller tiles or fewer slots; reproduce with: {{.*}} [E-memory]
npu.kernel @large(gm) l1=0 ub=0 ids=0 slots=1 {
  npu.loop count=2 {
    %w = npu.buffer l0b 6144 x 2
    %t = npu.buffer ub 20000 x 2
  }
}
