// An input that only the CPU takes stays there, and a float that comes up is cast once.

// RUN: stepwell-opt %s -p precision,border | filecheck %s

// CHECK: func.func @main(%n: !graph.host_value<"tensor(int64)[4]">, %x: !graph.host_value<"tensor(float)[4]">)
// CHECK-SAME: input_borders = ["tensor(int64)[4]", "tensor(float)[4]"]
func.func @main(%n: tensor<4xi64>, %x: !graph.host_value<"tensor(float)[4]">) -> (!graph.host_value<"tensor(int64)[4]">, tensor<4xf32>) {
  %0 = graph.cast %n : (tensor<4xi64>) -> tensor<4xi32>
  %1 = graph.download %0 : (tensor<4xi32>) -> !graph.host_value<"tensor(int64)[4]">
  // CHECK: [[U:%[0-9]+]] = graph.upload %x : (!graph.host_value<"tensor(float)[4]">) -> tensor<4xf32>
  // CHECK-NEXT: [[C:%[0-9]+]] = graph.cast [[U]] : (tensor<4xf32>) -> tensor<4xf16>
  // CHECK-NEXT: graph.relu [[C]] : (tensor<4xf16>) -> tensor<4xf16>
  %2 = graph.upload %x : (!graph.host_value<"tensor(float)[4]">) -> tensor<4xf32>
  %3 = graph.relu %2 : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: func.return %n,
  func.return %1, %3 : !graph.host_value<"tensor(int64)[4]">, tensor<4xf32>
}
