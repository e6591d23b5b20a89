// Two directions at once, one for each core; different activations in each; batch first.

// RUN-LEVELS: seed=304; precision=fp32,fp16; tolerance=20

builtin.module {
  func.func @main(%x: tensor<5x3x11xf32>, %z: tensor<3x5x11xf32>, %h: tensor<3x2x18xf32>) -> (tensor<5x2x3x18xf32>, tensor<2x3x18xf32>, tensor<2x3x18xf32>, tensor<5x2x3x7xf32>, tensor<2x3x7xf32>, tensor<5x2x3x33xf32>, tensor<2x3x33xf32>, tensor<3x5x2x18xf32>, tensor<3x2x18xf32>, tensor<3x2x18xf32>, tensor<3x5x1x6xf32>, tensor<3x1x6xf32>) {
    %w1 = graph.weight "5eed0000000000000001" : tensor<2x72x11xf32>
    %w2 = graph.weight "5eed0000000000000002" : tensor<2x72x18xf32>
    %w3 = graph.weight "5eed0000000000000003" : tensor<2x144xf32>
    %0, %1, %2 = graph.lstm %x, %w1, %w2, %w3 {inputs = [0, 1, 2, 3], direction = "bidirectional", activations = ["sigmoid", "tanh", "tanh", "sigmoid", "tanh", "tanh"]} : (tensor<5x3x11xf32>, tensor<2x72x11xf32>, tensor<2x72x18xf32>, tensor<2x144xf32>) -> (tensor<5x2x3x18xf32>, tensor<2x3x18xf32>, tensor<2x3x18xf32>)
    %w4 = graph.weight "5eed0000000000000004" : tensor<2x21x11xf32>
    %w5 = graph.weight "5eed0000000000000005" : tensor<2x21x7xf32>
    %w6 = graph.weight "5eed0000000000000006" : tensor<2x42xf32>
    %3, %4 = graph.gru %x, %w4, %w5, %w6 {inputs = [0, 1, 2, 3], direction = "bidirectional", activations = ["sigmoid", "tanh", "sigmoid", "tanh"], linear_before_reset = true} : (tensor<5x3x11xf32>, tensor<2x21x11xf32>, tensor<2x21x7xf32>, tensor<2x42xf32>) -> (tensor<5x2x3x7xf32>, tensor<2x3x7xf32>)
    %w7 = graph.weight "5eed0000000000000007" : tensor<2x33x11xf32>
    %w8 = graph.weight "5eed0000000000000008" : tensor<2x33x33xf32>
    %w9 = graph.weight "5eed0000000000000009" : tensor<2x66xf32>
    %5, %6 = graph.rnn %x, %w7, %w8, %w9 {inputs = [0, 1, 2, 3], direction = "bidirectional", activations = ["tanh", "relu"], clip = 2.0} : (tensor<5x3x11xf32>, tensor<2x33x11xf32>, tensor<2x33x33xf32>, tensor<2x66xf32>) -> (tensor<5x2x3x33xf32>, tensor<2x3x33xf32>)
    %w10 = graph.weight "5eed0000000000000010" : tensor<2x72x11xf32>
    %w11 = graph.weight "5eed0000000000000011" : tensor<2x72x18xf32>
    %w12 = graph.weight "5eed0000000000000012" : tensor<2x144xf32>
    %7, %8, %9 = graph.lstm %z, %w10, %w11, %w12, %h {inputs = [0, 1, 2, 3, 5], direction = "bidirectional", activations = ["sigmoid", "tanh", "tanh", "sigmoid", "tanh", "tanh"], layout = true} : (tensor<3x5x11xf32>, tensor<2x72x11xf32>, tensor<2x72x18xf32>, tensor<2x144xf32>, tensor<3x2x18xf32>) -> (tensor<3x5x2x18xf32>, tensor<3x2x18xf32>, tensor<3x2x18xf32>)
    %w13 = graph.weight "5eed0000000000000013" : tensor<1x18x11xf32>
    %w14 = graph.weight "5eed0000000000000014" : tensor<1x18x6xf32>
    %w15 = graph.weight "5eed0000000000000015" : tensor<1x36xf32>
    %10, %11 = graph.gru %z, %w13, %w14, %w15 {inputs = [0, 1, 2, 3], direction = "forward", activations = ["sigmoid", "tanh"], layout = true} : (tensor<3x5x11xf32>, tensor<1x18x11xf32>, tensor<1x18x6xf32>, tensor<1x36xf32>) -> (tensor<3x5x1x6xf32>, tensor<3x1x6xf32>)
    func.return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11 : tensor<5x2x3x18xf32>, tensor<2x3x18xf32>, tensor<2x3x18xf32>, tensor<5x2x3x7xf32>, tensor<2x3x7xf32>, tensor<5x2x3x33xf32>, tensor<2x3x33xf32>, tensor<3x5x2x18xf32>, tensor<3x2x18xf32>, tensor<3x2x18xf32>, tensor<3x5x1x6xf32>, tensor<3x1x6xf32>
  }
}
