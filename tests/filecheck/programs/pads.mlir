// Padding with any value, negative padding, nothing left of the operand, rows longer than UB.

// RUN-LEVELS: seed=11; precision=fp32,fp16

builtin.module {
  func.func @main(%x: tensor<2x3x5x7xf32>, %y: tensor<3x9000xi8>, %z: tensor<4xi1>, %i: tensor<2x2xi32>) -> (tensor<2x4x8x8xf32>, tensor<4x9003xi8>, tensor<6xi1>, tensor<5x2xi32>, tensor<2x3x4x11xf32>) {
    %0 = graph.pad %x {before = [0, 1, 2, 1], after = [0, 0, 1, 0], value = -1.5} : (tensor<2x3x5x7xf32>) -> tensor<2x4x8x8xf32>
    %1 = graph.pad %y {before = [0, -2], after = [1, 5], value = 7.0} : (tensor<3x9000xi8>) -> tensor<4x9003xi8>
    %2 = graph.pad %z {before = [3], after = [-1], value = 1.0} : (tensor<4xi1>) -> tensor<6xi1>
    %3 = graph.pad %i {before = [5, 0], after = [-2, 0], value = 123456789.0} : (tensor<2x2xi32>) -> tensor<5x2xi32>
    %4 = graph.pad %x {before = [0, 0, -2, 2], after = [0, 0, 1, 2], value = 0x7FF0000000000000 : f64} : (tensor<2x3x5x7xf32>) -> tensor<2x3x4x11xf32>
    func.return %0, %1, %2, %3, %4 : tensor<2x4x8x8xf32>, tensor<4x9003xi8>, tensor<6xi1>, tensor<5x2xi32>, tensor<2x3x4x11xf32>
  }
}
