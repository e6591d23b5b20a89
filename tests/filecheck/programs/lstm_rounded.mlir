// LSTM whose h is rounded to bytes before it is multiplied by integers: blocks of units, lengths, peepholes.

// RUN-LEVELS: seed=331; precision=fp32,fp16; tolerance=20

builtin.module {
  func.func @main(%x: tensor<5x1x320xf32>, %z: tensor<6x3x160xf32>, %h: tensor<2x3x20xf32>) -> (tensor<5x1x1x80xf32>, tensor<1x1x80xf32>, tensor<6x2x3x20xf32>, tensor<2x3x20xf32>, tensor<2x3x20xf32>) {
    %i1 = graph.constant dense<[0, 6, 2]> : tensor<3xi32>
    %w1 = graph.weight "5eed0000000000000001" : tensor<1x320x80xf32>
    %w2 = graph.weight "5eed0000000000000002" : tensor<1x4x80xf32>
    %0, %1, %2 = graph.recurrence %x, %w1, %w2 {cell = "lstm", activations = ["sigmoid", "tanh", "tanh"], reverse = [1], initial = [], rounded = true} : (tensor<5x1x320xf32>, tensor<1x320x80xf32>, tensor<1x4x80xf32>) -> (tensor<5x1x1x80xf32>, tensor<1x1x80xf32>, tensor<1x1x80xf32>)
    %w3 = graph.weight "5eed0000000000000003" : tensor<2x80x20xf32>
    %w4 = graph.weight "5eed0000000000000004" : tensor<2x7x20xf32>
    %3, %4, %5 = graph.recurrence %z, %w3, %h, %w4, %i1 {cell = "lstm", activations = ["sigmoid", "tanh", "tanh"], reverse = [0, 0], initial = [0], clip = 3.0, peephole = true, rounded = true} : (tensor<6x3x160xf32>, tensor<2x80x20xf32>, tensor<2x3x20xf32>, tensor<2x7x20xf32>, tensor<3xi32>) -> (tensor<6x2x3x20xf32>, tensor<2x3x20xf32>, tensor<2x3x20xf32>)
    func.return %0, %1, %3, %4, %5 : tensor<5x1x1x80xf32>, tensor<1x1x80xf32>, tensor<6x2x3x20xf32>, tensor<2x3x20xf32>, tensor<2x3x20xf32>
  }
}
