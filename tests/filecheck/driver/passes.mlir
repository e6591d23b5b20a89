// RUN: stepwell-opt %s -p cse,dce --verify-each | filecheck %s
// RUN: stepwell-opt %s -p dce,cse --stop-after dce | filecheck %s --check-prefix STOP
// RUN: stepwell-opt %s -p cse --time-passes 2>&1 >/dev/null | filecheck %s --check-prefix TIME
// RUN: stepwell-opt %s -p dce,cse --dump-dir %t.dump && filecheck %s --input-file %t.dump/01-dce.mlir --check-prefix STOP
// RUN: stepwell-opt --list-passes | filecheck %s --check-prefix LIST

// CHECK:      %a = arith.addf %x, %x : f32
// CHECK-NEXT: %c = arith.mulf %a, %a : f32
// CHECK-NEXT: func.return %c : f32

// STOP:      %a = arith.addf %x, %x : f32
// STOP-NEXT: %b = arith.addf %x, %x : f32
// STOP-NEXT: %c = arith.mulf %a, %b : f32
// STOP-NEXT: func.return %c : f32

// TIME: cse {{ *[0-9.]+}} ms {{ *[0-9]+}} ops

// LIST: stage-graph:
// LIST: fold {{.*}}compute what is constant
// LIST: stage-tile:
// LIST: upstream: canonicalize, cse

builtin.module {
  func.func @twice(%x: f32) -> f32 {
    %a = arith.addf %x, %x : f32
    %b = arith.addf %x, %x : f32
    %dead = arith.mulf %a, %b : f32
    %c = arith.mulf %a, %b : f32
    func.return %c : f32
  }
}
