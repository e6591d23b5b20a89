// GRU: the reset gate before and behind the product, initial state, a clip.

// RUN-LEVELS: seed=302; precision=fp32,fp16; tolerance=20

builtin.module {
  func.func @main(%x: tensor<6x3x9xf32>, %h: tensor<1x3x17xf32>) -> (tensor<6x1x3x17xf32>, tensor<1x3x17xf32>, tensor<6x1x3x17xf32>, tensor<1x3x17xf32>, tensor<6x1x3x4xf32>, tensor<1x3x16xf32>, tensor<6x1x3x3xf32>) {
    %w1 = graph.weight "5eed0000000000000001" : tensor<1x51x9xf32>
    %w2 = graph.weight "5eed0000000000000002" : tensor<1x51x17xf32>
    %w3 = graph.weight "5eed0000000000000003" : tensor<1x102xf32>
    %0, %1 = graph.gru %x, %w1, %w2, %w3, %h {inputs = [0, 1, 2, 3, 5], direction = "forward", activations = ["sigmoid", "tanh"]} : (tensor<6x3x9xf32>, tensor<1x51x9xf32>, tensor<1x51x17xf32>, tensor<1x102xf32>, tensor<1x3x17xf32>) -> (tensor<6x1x3x17xf32>, tensor<1x3x17xf32>)
    %w4 = graph.weight "5eed0000000000000004" : tensor<1x51x9xf32>
    %w5 = graph.weight "5eed0000000000000005" : tensor<1x51x17xf32>
    %w6 = graph.weight "5eed0000000000000006" : tensor<1x102xf32>
    %2, %3 = graph.gru %x, %w4, %w5, %w6, %h {inputs = [0, 1, 2, 3, 5], direction = "forward", activations = ["sigmoid", "tanh"], linear_before_reset = true} : (tensor<6x3x9xf32>, tensor<1x51x9xf32>, tensor<1x51x17xf32>, tensor<1x102xf32>, tensor<1x3x17xf32>) -> (tensor<6x1x3x17xf32>, tensor<1x3x17xf32>)
    %w7 = graph.weight "5eed0000000000000007" : tensor<1x12x9xf32>
    %w8 = graph.weight "5eed0000000000000008" : tensor<1x12x4xf32>
    %4, %5 = graph.gru %x, %w7, %w8 {inputs = [0, 1, 2], direction = "reverse", activations = ["sigmoid", "tanh"]} : (tensor<6x3x9xf32>, tensor<1x12x9xf32>, tensor<1x12x4xf32>) -> (tensor<6x1x3x4xf32>, tensor<1x3x4xf32>)
    %w9 = graph.weight "5eed0000000000000009" : tensor<1x48x9xf32>
    %w10 = graph.weight "5eed0000000000000010" : tensor<1x48x16xf32>
    %6, %7 = graph.gru %x, %w9, %w10 {inputs = [0, 1, 2], direction = "forward", activations = ["sigmoid", "tanh"], linear_before_reset = true, clip = 0.6} : (tensor<6x3x9xf32>, tensor<1x48x9xf32>, tensor<1x48x16xf32>) -> (tensor<6x1x3x16xf32>, tensor<1x3x16xf32>)
    %w11 = graph.weight "5eed0000000000000011" : tensor<1x9x9xf32>
    %w12 = graph.weight "5eed0000000000000012" : tensor<1x9x3xf32>
    %w13 = graph.weight "5eed0000000000000013" : tensor<1x18xf32>
    %8, %9 = graph.gru %x, %w11, %w12, %w13 {inputs = [0, 1, 2, 3], direction = "forward", activations = ["hardsigmoid(0.2, 0.5)", "softsign"], clip = 0.6} : (tensor<6x3x9xf32>, tensor<1x9x9xf32>, tensor<1x9x3xf32>, tensor<1x18xf32>) -> (tensor<6x1x3x3xf32>, tensor<1x3x3xf32>)
    func.return %0, %1, %2, %3, %4, %7, %8 : tensor<6x1x3x17xf32>, tensor<1x3x17xf32>, tensor<6x1x3x17xf32>, tensor<1x3x17xf32>, tensor<6x1x3x4xf32>, tensor<1x3x16xf32>, tensor<6x1x3x3xf32>
  }
}
