// Views and broadcasts of five and six axes.

// RUN-LEVELS: seed=107; precision=fp32

builtin.module {
  func.func @main(%x: tensor<4x5x6x7x8xf32>, %a: tensor<2x1x3x1x4xf32>, %b: tensor<1x3x1x2x1xf32>, %t: tensor<2x3x2x3x2x3xf32>) -> (tensor<2x2x2x3x2xf32>, tensor<2x3x3x2x4xf32>, tensor<3x2x3x2x3x2xf32>) {
    %0 = graph.slice %x {starts = [0, 1, 2, 0, 7], sizes = [2, 2, 2, 3, 2], steps = [2, 3, 1, 3, -5]} : (tensor<4x5x6x7x8xf32>) -> tensor<2x2x2x3x2xf32>
    %1 = graph.mul %a, %b : (tensor<2x1x3x1x4xf32>, tensor<1x3x1x2x1xf32>) -> tensor<2x3x3x2x4xf32>
    %2 = graph.transpose %t {perm = [5, 4, 3, 2, 1, 0]} : (tensor<2x3x2x3x2x3xf32>) -> tensor<3x2x3x2x3x2xf32>
    func.return %0, %1, %2 : tensor<2x2x2x3x2xf32>, tensor<2x3x3x2x4xf32>, tensor<3x2x3x2x3x2xf32>
  }
}
