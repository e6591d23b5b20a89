// Each mistake is answered by one line and exit code 1.

// RUN: not stepwell-opt %s -p canonicalise 2>&1 | filecheck %s --check-prefix NEAREST
// NEAREST: canonicalise: no such pass; did you mean canonicalize{{.*}}?
// NEAREST-NOT: {{.}}

// RUN: not stepwell-opt %s -p 'cse{' 2>&1 | filecheck %s --check-prefix SYNTAX
// SYNTAX: -p: cannot be read: {{.*}} ('cse{'); write pass,pass{option=value}

// RUN: not stepwell-opt %s -p 'cse{depth=3}' 2>&1 | filecheck %s --check-prefix OPTION
// OPTION: cse: Provided arguments ["depth"] not found in expected arguments []; options: none

// RUN: not stepwell-opt %s -p stage-brick 2>&1 | filecheck %s --check-prefix STAGE
// STAGE: brick: no such stage; there are graph, tile, npu

// RUN: not stepwell-opt %s --target nosuch 2>&1 | filecheck %s --check-prefix TARGET
// TARGET: target 'nosuch': not found; shipped are {{.*}}edge

// RUN: not stepwell-opt %t.nosuch.mlir 2>&1 | filecheck %s --check-prefix FILE
// FILE: nosuch.mlir: cannot be opened (No such file or directory)

// RUN: not stepwell-opt %s -p cse --stop-after dce 2>&1 | filecheck %s --check-prefix STOP
// STOP: dce: not a pass of this pipeline; it has cse

builtin.module {
}
