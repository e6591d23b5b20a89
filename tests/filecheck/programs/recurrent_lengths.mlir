// Sequences of several lengths (one has none, one is whole), forward and reverse.

// RUN-LEVELS: seed=305; precision=fp32,fp16; tolerance=20; %n=uniform(0, 9)

builtin.module {
  func.func @main(%x: tensor<8x5x7xf32>, %n: tensor<5xi32>, %h: tensor<1x5x12xf32>) -> (tensor<8x1x5x12xf32>, tensor<1x5x12xf32>, tensor<1x5x12xf32>, tensor<8x2x5x9xf32>, tensor<2x5x9xf32>, tensor<2x5x9xf32>, tensor<8x1x5x12xf32>, tensor<1x5x12xf32>, tensor<8x1x5x10xf32>, tensor<1x5x10xf32>, tensor<8x2x5x12xf32>, tensor<2x5x12xf32>) {
    %w1 = graph.weight "5eed0000000000000001" : tensor<1x48x7xf32>
    %w2 = graph.weight "5eed0000000000000002" : tensor<1x48x12xf32>
    %w3 = graph.weight "5eed0000000000000003" : tensor<1x96xf32>
    %0, %1, %2 = graph.lstm %x, %w1, %w2, %w3, %n, %h {inputs = [0, 1, 2, 3, 4, 5], direction = "reverse", activations = ["sigmoid", "tanh", "tanh"]} : (tensor<8x5x7xf32>, tensor<1x48x7xf32>, tensor<1x48x12xf32>, tensor<1x96xf32>, tensor<5xi32>, tensor<1x5x12xf32>) -> (tensor<8x1x5x12xf32>, tensor<1x5x12xf32>, tensor<1x5x12xf32>)
    %w4 = graph.weight "5eed0000000000000004" : tensor<2x36x7xf32>
    %w5 = graph.weight "5eed0000000000000005" : tensor<2x36x9xf32>
    %w6 = graph.weight "5eed0000000000000006" : tensor<2x72xf32>
    %w7 = graph.weight "5eed0000000000000007" : tensor<2x27xf32>
    %3, %4, %5 = graph.lstm %x, %w4, %w5, %w6, %n, %w7 {inputs = [0, 1, 2, 3, 4, 7], direction = "bidirectional", activations = ["sigmoid", "tanh", "tanh", "sigmoid", "tanh", "tanh"]} : (tensor<8x5x7xf32>, tensor<2x36x7xf32>, tensor<2x36x9xf32>, tensor<2x72xf32>, tensor<5xi32>, tensor<2x27xf32>) -> (tensor<8x2x5x9xf32>, tensor<2x5x9xf32>, tensor<2x5x9xf32>)
    %w8 = graph.weight "5eed0000000000000008" : tensor<1x36x7xf32>
    %w9 = graph.weight "5eed0000000000000009" : tensor<1x36x12xf32>
    %w10 = graph.weight "5eed0000000000000010" : tensor<1x72xf32>
    %6, %7 = graph.gru %x, %w8, %w9, %w10, %n, %h {inputs = [0, 1, 2, 3, 4, 5], direction = "reverse", activations = ["sigmoid", "tanh"]} : (tensor<8x5x7xf32>, tensor<1x36x7xf32>, tensor<1x36x12xf32>, tensor<1x72xf32>, tensor<5xi32>, tensor<1x5x12xf32>) -> (tensor<8x1x5x12xf32>, tensor<1x5x12xf32>)
    %w11 = graph.weight "5eed0000000000000011" : tensor<1x30x7xf32>
    %w12 = graph.weight "5eed0000000000000012" : tensor<1x30x10xf32>
    %w13 = graph.weight "5eed0000000000000013" : tensor<1x60xf32>
    %8, %9 = graph.gru %x, %w11, %w12, %w13, %n {inputs = [0, 1, 2, 3, 4], direction = "forward", activations = ["sigmoid", "tanh"], linear_before_reset = true} : (tensor<8x5x7xf32>, tensor<1x30x7xf32>, tensor<1x30x10xf32>, tensor<1x60xf32>, tensor<5xi32>) -> (tensor<8x1x5x10xf32>, tensor<1x5x10xf32>)
    %w14 = graph.weight "5eed0000000000000014" : tensor<2x12x7xf32>
    %w15 = graph.weight "5eed0000000000000015" : tensor<2x12x12xf32>
    %w16 = graph.weight "5eed0000000000000016" : tensor<2x24xf32>
    %10, %11 = graph.rnn %x, %w14, %w15, %w16, %n {inputs = [0, 1, 2, 3, 4], direction = "bidirectional", activations = ["tanh", "tanh"]} : (tensor<8x5x7xf32>, tensor<2x12x7xf32>, tensor<2x12x12xf32>, tensor<2x24xf32>, tensor<5xi32>) -> (tensor<8x2x5x12xf32>, tensor<2x5x12xf32>)
    func.return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11 : tensor<8x1x5x12xf32>, tensor<1x5x12xf32>, tensor<1x5x12xf32>, tensor<8x2x5x9xf32>, tensor<2x5x9xf32>, tensor<2x5x9xf32>, tensor<8x1x5x12xf32>, tensor<1x5x12xf32>, tensor<8x1x5x10xf32>, tensor<1x5x10xf32>, tensor<8x2x5x12xf32>, tensor<2x5x12xf32>
  }
}
