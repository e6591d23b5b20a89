// A broken rule is one line with the place, not a dump of the module.

// RUN: not stepwell-opt %s --split-input-file 2>&1 >/dev/null | filecheck %s --check-prefix FIRST
// FIRST: verify.mlir:14:5: func.return: Expected arguments to have the same types as the function output types: expected [f64] (found [f32]); change the IR{{.*}}
// FIRST-NOT: {{.}}

// RUN: stepwell-opt %s --split-input-file --verify-diagnostics | filecheck %s --check-prefix ALL
// ALL: verify.mlir:{{[0-9]+}}:5: func.return: Expected arguments

// ALL: verify.mlir:{{[0-9]+}}:5: arith.addf: operand 1 is defined before it is used (found the result of a later arith.mulf)

builtin.module {
  func.func @wrong_type(%x: f32) -> f64 {
    func.return %x : f32
  }
}

// -----

builtin.module {
  func.func @too_late(%x: f32) -> f32 {
    %y = arith.addf %x, %z : f32
    %z = arith.mulf %x, %x : f32
    func.return %y : f32
  }
}
