// What the verifier refuses, by its message; one module each.

// RUN: stepwell-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: must broadcast together (found 2×3, 4)
builtin.module {
  func.func @main(%0: tensor<2x3xf32>, %1: tensor<4xf32>) {
    %2 = graph.add %0, %1 : (tensor<2x3xf32>, tensor<4xf32>) -> tensor<2x3xf32>
    func.return
  }
}

// -----

// CHECK: result has shape 3, its operands give 2
builtin.module {
  func.func @main(%0: tensor<2xf32>) {
    %1 = graph.exp %0 : (tensor<2xf32>) -> tensor<3xf32>
    func.return
  }
}

// -----

// CHECK: the contracted axes agree (found 3 and 4)
builtin.module {
  func.func @main(%0: tensor<2x3xf32>, %1: tensor<4x5xf32>) {
    %2 = graph.matmul %0, %1 : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
    func.return
  }
}

// -----

// CHECK: the bias is a tensor<4xf32> (found tensor<5xf32>)
builtin.module {
  func.func @main(%0: tensor<2x3xf32>, %1: tensor<3x4xf32>, %2: tensor<5xf32>) {
    %3 = graph.matmul %0, %1, %2 : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<5xf32>) -> tensor<2x4xf32>
    func.return
  }
}

// -----

// CHECK: the packed weight is [144, outputs] (found [72, 5])
builtin.module {
  func.func @main(%0: tensor<1x8x8x8xf32>, %1: tensor<72x5xf32>) {
    %2 = graph.conv2d %0, %1 {kernel = [3, 3], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], channels = 8} : (tensor<1x8x8x8xf32>, tensor<72x5xf32>) -> tensor<1x6x6x5xf32>
    func.return
  }
}

// -----

// CHECK: the window fits into the padded operand (found 9 taps over 8)
builtin.module {
  func.func @main(%0: tensor<1x3x8x8xf32>, %1: tensor<5x3x9x9xf32>) {
    %2 = graph.conv %0, %1 {kernel = [9, 9], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x3x8x8xf32>, tensor<5x3x9x9xf32>) -> tensor<1x5x1x1xf32>
    func.return
  }
}

// -----

// CHECK: keeps the number of elements
builtin.module {
  func.func @main(%0: tensor<2x3xf32>) {
    %1 = graph.reshape %0 {shape = [5]} : (tensor<2x3xf32>) -> tensor<5xf32>
    func.return
  }
}

// -----

// CHECK: elements keep their type (found f16, f32)
builtin.module {
  func.func @main(%0: tensor<2x3xf32>) {
    %1 = graph.transpose %0 {perm = [1, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf16>
    func.return
  }
}

// -----

// CHECK: a slice lies inside its axis of 5 (found 3 elements from 1 by 2)
builtin.module {
  func.func @main(%0: tensor<5xf32>) {
    %1 = graph.slice %0 {starts = [1], sizes = [3], steps = [2]} : (tensor<5xf32>) -> tensor<3xf32>
    func.return
  }
}

// -----

// CHECK: at most 64 elements stand in text (found 65); use graph.weight
builtin.module {
  func.func @main() {
    %0 = graph.constant dense<0.0> : tensor<65xf32>
    func.return
  }
}

// -----

// CHECK: 16 or more hexadecimal digits
builtin.module {
  func.func @main() {
    %0 = graph.weight "xyz" : tensor<65xf32>
    func.return
  }
}

// -----

// CHECK: results have the yielded types (found tensor<4xf16>; tensor<4xf32>)
builtin.module {
  func.func @main(%0: tensor<4xf32>) {
    %1 = graph.kernel(%a = %0) : (tensor<4xf32>) -> tensor<4xf16> {
      graph.yield %a : tensor<4xf32>
    }
    func.return
  }
}

// -----

// CHECK: the body ends with graph.yield
builtin.module {
  func.func @main(%0: tensor<4xf32>) {
    %1 = graph.kernel(%a = %0) : (tensor<4xf32>) -> tensor<4xf32> {
      %2 = graph.relu %a : (tensor<4xf32>) -> tensor<4xf32>
    }
    func.return
  }
}

// -----

// CHECK: graph.if: the condition is one value of i1 (found tensor<f32>)
func.func @main(%c: tensor<f32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.if %c, %x, %x {then = @f, otherwise = @f, split = 1} : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// CHECK: graph.if: its functions are in the module (found no @f)
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.if %c, %x, %x {then = @f, otherwise = @f, split = 1} : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// CHECK: graph.if: operands for @f: are tensor<3xf32> (found tensor<4xf32>)
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.if %c, %x, %x {then = @f, otherwise = @f, split = 1} : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  func.return %x : tensor<3xf32>
}

// -----

// CHECK: graph.if: split: counts operands (found 7 of 3)
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.if %c, %x, %x {then = @f, otherwise = @f, split = 7} : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// CHECK: graph.loop: what @f gives: are tensor<i1>, tensor<4xf32> (found tensor<4xf32>)
func.func @main(%n: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.loop %n, %x {body = @f, states = 1, counted = true, tested = false} : (tensor<i32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func @f(%i: tensor<i32>, %c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}

// -----

// CHECK: w is a tensor<5x16xui8> (found tensor<5x32xui8>)
builtin.module {
  func.func @main(%0: tensor<2x32xf16>, %1: tensor<5x32xui8>, %2: tensor<5x2xf16>) {
    %3 = graph.packed_matmul %0, %1, %2 {kind = "i4", block = 16} : (tensor<2x32xf16>, tensor<5x32xui8>, tensor<5x2xf16>) -> tensor<2x5xf16>
    func.return
  }
}

// -----

// CHECK: zero is a tensor<5x2xui8> (found tensor<5x2xi8>)
builtin.module {
  func.func @main(%0: tensor<2x32xf16>, %1: tensor<5x16xui8>, %2: tensor<5x2xf16>, %3: tensor<5x2xi8>) {
    %4 = graph.packed_matmul %0, %1, %2, %3 {kind = "u4", block = 16, zeros = true} : (tensor<2x32xf16>, tensor<5x16xui8>, tensor<5x2xf16>, tensor<5x2xi8>) -> tensor<2x5xf16>
    func.return
  }
}

// -----

// CHECK: a block has 16 elements or more (found 8)
builtin.module {
  func.func @main(%0: tensor<2x32xf16>, %1: tensor<5x16xui8>, %2: tensor<5x4xf16>) {
    %3 = graph.packed_matmul %0, %1, %2 {kind = "i4", block = 8} : (tensor<2x32xf16>, tensor<5x16xui8>, tensor<5x4xf16>) -> tensor<2x5xf16>
    func.return
  }
}

// -----

// CHECK: the kind is one of i8, u8, i4, u4 (found 'i2')
builtin.module {
  func.func @main(%0: tensor<2x32xf16>, %1: tensor<5x16xui8>, %2: tensor<5x2xf16>) {
    %3 = graph.packed_matmul %0, %1, %2 {kind = "i2", block = 16} : (tensor<2x32xf16>, tensor<5x16xui8>, tensor<5x2xf16>) -> tensor<2x5xf16>
    func.return
  }
}

// -----

// CHECK: what is rounded runs forwards where sequences have lengths (found reverse)
builtin.module {
  func.func @main(%0: tensor<6x3x80xf32>, %1: tensor<1x80x20xf32>, %2: tensor<1x4x20xf32>, %3: tensor<3xi32>) {
    %4, %5, %6 = graph.recurrence %0, %1, %2, %3 {cell = "lstm", activations = ["sigmoid", "tanh", "tanh"], reverse = [1], initial = [], rounded = true} : (tensor<6x3x80xf32>, tensor<1x80x20xf32>, tensor<1x4x20xf32>, tensor<3xi32>) -> (tensor<6x1x3x20xf32>, tensor<1x3x20xf32>, tensor<1x3x20xf32>)
    func.return
  }
}

// -----

// CHECK: limits are those of integers within i8 and 24 bits (found -8 to 200)
builtin.module {
  func.func @main(%0: tensor<2x8xf32>, %1: tensor<f32>, %2: tensor<i8>) {
    %3 = graph.quantize %0, %1, %2 {limits = [-8, 200]} : (tensor<2x8xf32>, tensor<f32>, tensor<i8>) -> tensor<2x8xi8>
    func.return
  }
}
