// LSTM: peepholes, initial states, a clip, coupled gates; each result alone and all together.

// RUN-LEVELS: seed=301; precision=fp32,fp16; tolerance=20

builtin.module {
  func.func @main(%x: tensor<7x3x13xf32>, %h: tensor<1x3x20xf32>, %c: tensor<1x3x20xf32>) -> (tensor<7x1x3x20xf32>, tensor<1x3x20xf32>, tensor<1x3x20xf32>, tensor<1x3x5xf32>, tensor<7x1x3x1xf32>, tensor<1x3x16xf32>) {
    %w1 = graph.weight "5eed0000000000000001" : tensor<1x80x13xf32>
    %w2 = graph.weight "5eed0000000000000002" : tensor<1x80x20xf32>
    %w3 = graph.weight "5eed0000000000000003" : tensor<1x160xf32>
    %w4 = graph.weight "5eed0000000000000004" : tensor<1x60xf32>
    %0, %1, %2 = graph.lstm %x, %w1, %w2, %w3, %h, %c, %w4 {inputs = [0, 1, 2, 3, 5, 6, 7], direction = "forward", activations = ["sigmoid", "tanh", "tanh"]} : (tensor<7x3x13xf32>, tensor<1x80x13xf32>, tensor<1x80x20xf32>, tensor<1x160xf32>, tensor<1x3x20xf32>, tensor<1x3x20xf32>, tensor<1x60xf32>) -> (tensor<7x1x3x20xf32>, tensor<1x3x20xf32>, tensor<1x3x20xf32>)
    %w5 = graph.weight "5eed0000000000000005" : tensor<1x20x13xf32>
    %w6 = graph.weight "5eed0000000000000006" : tensor<1x20x5xf32>
    %3, %4, %5 = graph.lstm %x, %w5, %w6 {inputs = [0, 1, 2], direction = "forward", activations = ["sigmoid", "tanh", "tanh"]} : (tensor<7x3x13xf32>, tensor<1x20x13xf32>, tensor<1x20x5xf32>) -> (tensor<7x1x3x5xf32>, tensor<1x3x5xf32>, tensor<1x3x5xf32>)
    %w7 = graph.weight "5eed0000000000000007" : tensor<1x4x13xf32>
    %w8 = graph.weight "5eed0000000000000008" : tensor<1x4x1xf32>
    %w9 = graph.weight "5eed0000000000000009" : tensor<1x8xf32>
    %6, %7, %8 = graph.lstm %x, %w7, %w8, %w9 {inputs = [0, 1, 2, 3], direction = "forward", activations = ["sigmoid", "tanh", "tanh"], clip = 0.75, input_forget = true} : (tensor<7x3x13xf32>, tensor<1x4x13xf32>, tensor<1x4x1xf32>, tensor<1x8xf32>) -> (tensor<7x1x3x1xf32>, tensor<1x3x1xf32>, tensor<1x3x1xf32>)
    %w10 = graph.weight "5eed0000000000000010" : tensor<1x3x16xf32>
    %w11 = graph.weight "5eed0000000000000011" : tensor<1x64x13xf32>
    %w12 = graph.weight "5eed0000000000000012" : tensor<1x64x16xf32>
    %w13 = graph.weight "5eed0000000000000013" : tensor<1x128xf32>
    %w14 = graph.weight "5eed0000000000000014" : tensor<1x48xf32>
    %9, %10, %11 = graph.lstm %x, %w11, %w12, %w13, %w10, %w14 {inputs = [0, 1, 2, 3, 6, 7], direction = "reverse", activations = ["sigmoid", "tanh", "tanh"], clip = 0.5} : (tensor<7x3x13xf32>, tensor<1x64x13xf32>, tensor<1x64x16xf32>, tensor<1x128xf32>, tensor<1x3x16xf32>, tensor<1x48xf32>) -> (tensor<7x1x3x16xf32>, tensor<1x3x16xf32>, tensor<1x3x16xf32>)
    func.return %0, %1, %2, %4, %6, %11 : tensor<7x1x3x20xf32>, tensor<1x3x20xf32>, tensor<1x3x20xf32>, tensor<1x3x5xf32>, tensor<7x1x3x1xf32>, tensor<1x3x16xf32>
  }
}
