// Weights larger than L1: a part stays on chip, the rest comes in each step.

// RUN-LEVELS: seed=308; precision=fp16; tolerance=40

builtin.module {
  func.func @main(%x: tensor<3x2x300xf32>) -> (tensor<3x1x2x300xf32>, tensor<1x2x300xf32>, tensor<1x2x300xf32>) {
    %w1 = graph.weight "5eed0000000000000001" : tensor<1x1200x300xf32>
    %w2 = graph.weight "5eed0000000000000002" : tensor<1x1200x300xf32>
    %w3 = graph.weight "5eed0000000000000003" : tensor<1x2400xf32>
    %0, %1, %2 = graph.lstm %x, %w1, %w2, %w3 {inputs = [0, 1, 2, 3], direction = "forward", activations = ["sigmoid", "tanh", "tanh"]} : (tensor<3x2x300xf32>, tensor<1x1200x300xf32>, tensor<1x1200x300xf32>, tensor<1x2400xf32>) -> (tensor<3x1x2x300xf32>, tensor<1x2x300xf32>, tensor<1x2x300xf32>)
    func.return %0, %1, %2 : tensor<3x1x2x300xf32>, tensor<1x2x300xf32>, tensor<1x2x300xf32>
  }
}
