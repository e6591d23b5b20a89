// Padding with zeros: before and after, on an axis of one element, of more than one axis.

// RUN-LEVELS: seed=5

builtin.module {
  func.func @main(%w: tensor<3x4xf32>, %x: tensor<1x1x6xf32>) -> (tensor<5x9xf32>, tensor<4x3x6xf32>) {
    %0 = graph.pad %w {before = [2, 0], after = [0, 5]} : (tensor<3x4xf32>) -> tensor<5x9xf32>
    %1 = graph.pad %x {before = [1, 2, 0], after = [2, 0, 0]} : (tensor<1x1x6xf32>) -> tensor<4x3x6xf32>
    func.return %0, %1 : tensor<5x9xf32>, tensor<4x3x6xf32>
  }
}
