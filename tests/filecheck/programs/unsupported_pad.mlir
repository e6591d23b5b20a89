// Padding with zeros has no tile form yet.

// RUN-LEVELS: fails=every value of a fused kernel broadcasts to its space

builtin.module {
  func.func @main(%w: tensor<3x4xf32>) -> tensor<5x9xf32> {
    %0 = graph.pad %w {before = [2, 0], after = [0, 5]} : (tensor<3x4xf32>) -> tensor<5x9xf32>
    func.return %0 : tensor<5x9xf32>
  }
}
