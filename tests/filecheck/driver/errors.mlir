// Each mistake is answered by one line and exit code 1.

// RUN: not stepwell-opt %s -p canonicalise 2>&1 | filecheck %s --check-prefix NEAREST
// NEAREST: canonicalise: is a pass (found none of this name); did you mean canonicalize{{.*}}? [E-command]
// NEAREST-NOT: {{.}}

// RUN: not stepwell-opt %s -p 'cse{' 2>&1 | filecheck %s --check-prefix SYNTAX
// SYNTAX: -p: is a list of passes (found 'cse{': {{.*}}); write pass,pass{option=value} [E-command]

// RUN: not stepwell-opt %s -p 'cse{depth=3}' 2>&1 | filecheck %s --check-prefix OPTION
// OPTION: cse: takes its own options (found Provided arguments ["depth"] not found in expected arguments []); options: none

// RUN: not stepwell-opt %s -p stage-brick 2>&1 | filecheck %s --check-prefix STAGE
// STAGE: brick: is a stage (found none of this name); there are graph, tile, npu

// RUN: not stepwell-opt %s --target nosuch 2>&1 | filecheck %s --check-prefix TARGET
// TARGET: target 'nosuch': is a shipped one or a .toml file (found none of this name); shipped are {{.*}}edge

// RUN: not stepwell-opt %t.nosuch.mlir 2>&1 | filecheck %s --check-prefix FILE
// FILE: nosuch.mlir: can be opened (found No such file or directory); check the path [E-file]

// RUN: not stepwell-opt %s -p cse --stop-after dce 2>&1 | filecheck %s --check-prefix STOP
// STOP: dce: is a pass of this pipeline (found none of this name); it has cse

// RUN: not stepwell-opt %S 2>&1 | filecheck %s --check-prefix FOLDER
// FOLDER: driver: is a file (found a folder); name an .mlir or .onnx file [E-command]

builtin.module {
}
