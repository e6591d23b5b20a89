// Values of the CPU: text and back, transfers, and what the verifier says of a type that is none.

// RUN: stepwell-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: func.func @main
// CHECK-NEXT: %1 = graph.download %0 : (tensor<4xf16>) -> !graph.host_value<"tensor(float)[4]">
// CHECK-NEXT: %2 = graph.upload %1 : (!graph.host_value<"tensor(float)[4]">) -> tensor<4xf32>
func.func @main(%0: tensor<4xf16>) -> tensor<4xf32> {
  %1 = graph.download %0 : (tensor<4xf16>) -> !graph.host_value<"tensor(float)[4]">
  %2 = graph.upload %1 : (!graph.host_value<"tensor(float)[4]">) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// -----

// CHECK: a host type reads tensor(int64)[2,?] (found 'int64')
func.func @main(%0: !graph.host_value<"int64">) -> !graph.host_value<"int64"> {
  func.return %0 : !graph.host_value<"int64">
}
