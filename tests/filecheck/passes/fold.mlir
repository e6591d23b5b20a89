// RUN: stepwell-opt %s -p fold | filecheck %s

builtin.module {
  // Constants are computed, also through composites.
  // CHECK-LABEL: func.func @constants
  // CHECK-NEXT:    graph.constant dense<[5.000000e+00, 7.000000e+00]> : tensor<2xf32>
  // CHECK-NEXT:    func.return
  func.func @constants() -> tensor<2xf32> {
    %0 = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %1 = graph.constant dense<2.0> : tensor<f32>
    %2 = graph.mul %0, %1 : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    %3 = graph.constant dense<3.0> : tensor<f32>
    %4 = graph.add %2, %3 : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    func.return %4 : tensor<2xf32>
  }

  // What only repeats a constant stays small.
  // CHECK-LABEL: func.func @growth
  // CHECK:         graph.expand
  func.func @growth() -> tensor<1000x1000xf32> {
    %0 = graph.constant dense<1.0> : tensor<f32>
    %1 = graph.expand %0 {shape = [1000, 1000]} : (tensor<f32>) -> tensor<1000x1000xf32>
    func.return %1 : tensor<1000x1000xf32>
  }

  // CHECK-LABEL: func.func @views
  // CHECK-NEXT:    func.return %x : tensor<2x3xf32>
  func.func @views(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = graph.transpose %x {perm = [1, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = graph.transpose %0 {perm = [1, 0]} : (tensor<3x2xf32>) -> tensor<2x3xf32>
    %2 = graph.reshape %1 {shape = [6]} : (tensor<2x3xf32>) -> tensor<6xf32>
    %3 = graph.reshape %2 {shape = [2, 3]} : (tensor<6xf32>) -> tensor<2x3xf32>
    %4 = graph.slice %3 {starts = [0, 0], sizes = [2, 3], steps = [1, 1]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %5 = graph.concat %4 {axis = 0} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    func.return %5 : tensor<2x3xf32>
  }

  // Moving axes of extent 1 moves nothing.
  // CHECK-LABEL: func.func @unit_axes
  // CHECK-NEXT:    graph.reshape %x {shape = [1, 3, 1, 5]}
  // CHECK-NEXT:    func.return
  func.func @unit_axes(%x: tensor<1x1x3x5xf32>) -> tensor<1x3x1x5xf32> {
    %0 = graph.transpose %x {perm = [0, 2, 1, 3]} : (tensor<1x1x3x5xf32>) -> tensor<1x3x1x5xf32>
    func.return %0 : tensor<1x3x1x5xf32>
  }

  // x·1 is x; x + 0 is not, of −0.
  // CHECK-LABEL: func.func @neutral
  // CHECK-NEXT:    %0 = graph.constant dense<0.000000e+00>
  // CHECK-NEXT:    %1 = graph.add %x, %0
  // CHECK-NEXT:    func.return %1
  func.func @neutral(%x: tensor<4xf32>) -> tensor<4xf32> {
    %one = graph.constant dense<1.0> : tensor<1xf32>
    %0 = graph.mul %one, %x : (tensor<1xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = graph.constant dense<0.0> : tensor<f32>
    %2 = graph.add %0, %1 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    func.return %2 : tensor<4xf32>
  }

  // An exact cast between two others does not count; a rounding one does.
  // CHECK-LABEL: func.func @casts
  // CHECK-NEXT:    graph.cast %x : (tensor<4xf32>) -> tensor<4xf16>
  // CHECK-NEXT:    graph.cast %{{.*}} : (tensor<4xf16>) -> tensor<4xbf16>
  // CHECK-NEXT:    func.return
  func.func @casts(%x: tensor<4xf32>) -> tensor<4xbf16> {
    %0 = graph.cast %x : (tensor<4xf32>) -> tensor<4xf16>
    %1 = graph.cast %0 : (tensor<4xf16>) -> tensor<4xf32>
    %2 = graph.cast %1 : (tensor<4xf32>) -> tensor<4xbf16>
    func.return %2 : tensor<4xbf16>
  }

  // Equal ops are one, and what is dead goes.
  // CHECK-LABEL: func.func @equal
  // CHECK-NEXT:    %0 = graph.relu %x
  // CHECK-NEXT:    %1 = graph.mul %0, %0
  // CHECK-NEXT:    func.return %1
  func.func @equal(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    %1 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    %2 = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %3 = graph.mul %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return %3 : tensor<4xf32>
  }

  // An elementwise op repeats its operands itself.
  // CHECK-LABEL: func.func @expanded
  // CHECK-NEXT:    graph.add %x, %y
  func.func @expanded(%x: tensor<2x4xf32>, %y: tensor<4xf32>) -> tensor<2x4xf32> {
    %0 = graph.expand %y {shape = [2, 4]} : (tensor<4xf32>) -> tensor<2x4xf32>
    %1 = graph.add %x, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    func.return %1 : tensor<2x4xf32>
  }
}
