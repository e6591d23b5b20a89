// RNN with every activation of the standard.

// RUN-LEVELS: seed=303; precision=fp32,fp16; tolerance=20

builtin.module {
  func.func @main(%x: tensor<4x2x6xf32>) -> (tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>) {
    %w1 = graph.weight "5eed0000000000000001" : tensor<1x3x6xf32>
    %w2 = graph.weight "5eed0000000000000002" : tensor<1x3x3xf32>
    %w3 = graph.weight "5eed0000000000000003" : tensor<1x6xf32>
    %0, %1 = graph.rnn %x, %w1, %w2, %w3 {inputs = [0, 1, 2, 3], direction = "forward", activations = ["relu"], clip = 1.5} : (tensor<4x2x6xf32>, tensor<1x3x6xf32>, tensor<1x3x3xf32>, tensor<1x6xf32>) -> (tensor<4x1x2x3xf32>, tensor<1x2x3xf32>)
    %w4 = graph.weight "5eed0000000000000004" : tensor<1x3x6xf32>
    %w5 = graph.weight "5eed0000000000000005" : tensor<1x3x3xf32>
    %w6 = graph.weight "5eed0000000000000006" : tensor<1x6xf32>
    %2, %3 = graph.rnn %x, %w4, %w5, %w6 {inputs = [0, 1, 2, 3], direction = "reverse", activations = ["tanh"], clip = 1.5} : (tensor<4x2x6xf32>, tensor<1x3x6xf32>, tensor<1x3x3xf32>, tensor<1x6xf32>) -> (tensor<4x1x2x3xf32>, tensor<1x2x3xf32>)
    %w7 = graph.weight "5eed0000000000000007" : tensor<1x3x6xf32>
    %w8 = graph.weight "5eed0000000000000008" : tensor<1x3x3xf32>
    %w9 = graph.weight "5eed0000000000000009" : tensor<1x6xf32>
    %4, %5 = graph.rnn %x, %w7, %w8, %w9 {inputs = [0, 1, 2, 3], direction = "forward", activations = ["sigmoid"], clip = 1.5} : (tensor<4x2x6xf32>, tensor<1x3x6xf32>, tensor<1x3x3xf32>, tensor<1x6xf32>) -> (tensor<4x1x2x3xf32>, tensor<1x2x3xf32>)
    %w10 = graph.weight "5eed0000000000000010" : tensor<1x3x6xf32>
    %w11 = graph.weight "5eed0000000000000011" : tensor<1x3x3xf32>
    %w12 = graph.weight "5eed0000000000000012" : tensor<1x6xf32>
    %6, %7 = graph.rnn %x, %w10, %w11, %w12 {inputs = [0, 1, 2, 3], direction = "reverse", activations = ["affine(0.5, 0.25)"], clip = 1.5} : (tensor<4x2x6xf32>, tensor<1x3x6xf32>, tensor<1x3x3xf32>, tensor<1x6xf32>) -> (tensor<4x1x2x3xf32>, tensor<1x2x3xf32>)
    %w13 = graph.weight "5eed0000000000000013" : tensor<1x3x6xf32>
    %w14 = graph.weight "5eed0000000000000014" : tensor<1x3x3xf32>
    %w15 = graph.weight "5eed0000000000000015" : tensor<1x6xf32>
    %8, %9 = graph.rnn %x, %w13, %w14, %w15 {inputs = [0, 1, 2, 3], direction = "forward", activations = ["leakyrelu(0.1)"], clip = 1.5} : (tensor<4x2x6xf32>, tensor<1x3x6xf32>, tensor<1x3x3xf32>, tensor<1x6xf32>) -> (tensor<4x1x2x3xf32>, tensor<1x2x3xf32>)
    %w16 = graph.weight "5eed0000000000000016" : tensor<1x3x6xf32>
    %w17 = graph.weight "5eed0000000000000017" : tensor<1x3x3xf32>
    %w18 = graph.weight "5eed0000000000000018" : tensor<1x6xf32>
    %10, %11 = graph.rnn %x, %w16, %w17, %w18 {inputs = [0, 1, 2, 3], direction = "reverse", activations = ["thresholdedrelu(0.5)"], clip = 1.5} : (tensor<4x2x6xf32>, tensor<1x3x6xf32>, tensor<1x3x3xf32>, tensor<1x6xf32>) -> (tensor<4x1x2x3xf32>, tensor<1x2x3xf32>)
    %w19 = graph.weight "5eed0000000000000019" : tensor<1x3x6xf32>
    %w20 = graph.weight "5eed0000000000000020" : tensor<1x3x3xf32>
    %w21 = graph.weight "5eed0000000000000021" : tensor<1x6xf32>
    %12, %13 = graph.rnn %x, %w19, %w20, %w21 {inputs = [0, 1, 2, 3], direction = "forward", activations = ["scaledtanh(1.5, 0.5)"], clip = 1.5} : (tensor<4x2x6xf32>, tensor<1x3x6xf32>, tensor<1x3x3xf32>, tensor<1x6xf32>) -> (tensor<4x1x2x3xf32>, tensor<1x2x3xf32>)
    %w22 = graph.weight "5eed0000000000000022" : tensor<1x3x6xf32>
    %w23 = graph.weight "5eed0000000000000023" : tensor<1x3x3xf32>
    %w24 = graph.weight "5eed0000000000000024" : tensor<1x6xf32>
    %14, %15 = graph.rnn %x, %w22, %w23, %w24 {inputs = [0, 1, 2, 3], direction = "reverse", activations = ["hardsigmoid(0.25, 0.5)"], clip = 1.5} : (tensor<4x2x6xf32>, tensor<1x3x6xf32>, tensor<1x3x3xf32>, tensor<1x6xf32>) -> (tensor<4x1x2x3xf32>, tensor<1x2x3xf32>)
    %w25 = graph.weight "5eed0000000000000025" : tensor<1x3x6xf32>
    %w26 = graph.weight "5eed0000000000000026" : tensor<1x3x3xf32>
    %w27 = graph.weight "5eed0000000000000027" : tensor<1x6xf32>
    %16, %17 = graph.rnn %x, %w25, %w26, %w27 {inputs = [0, 1, 2, 3], direction = "forward", activations = ["elu(0.75)"], clip = 1.5} : (tensor<4x2x6xf32>, tensor<1x3x6xf32>, tensor<1x3x3xf32>, tensor<1x6xf32>) -> (tensor<4x1x2x3xf32>, tensor<1x2x3xf32>)
    %w28 = graph.weight "5eed0000000000000028" : tensor<1x3x6xf32>
    %w29 = graph.weight "5eed0000000000000029" : tensor<1x3x3xf32>
    %w30 = graph.weight "5eed0000000000000030" : tensor<1x6xf32>
    %18, %19 = graph.rnn %x, %w28, %w29, %w30 {inputs = [0, 1, 2, 3], direction = "reverse", activations = ["softsign"], clip = 1.5} : (tensor<4x2x6xf32>, tensor<1x3x6xf32>, tensor<1x3x3xf32>, tensor<1x6xf32>) -> (tensor<4x1x2x3xf32>, tensor<1x2x3xf32>)
    %w31 = graph.weight "5eed0000000000000031" : tensor<1x3x6xf32>
    %w32 = graph.weight "5eed0000000000000032" : tensor<1x3x3xf32>
    %w33 = graph.weight "5eed0000000000000033" : tensor<1x6xf32>
    %20, %21 = graph.rnn %x, %w31, %w32, %w33 {inputs = [0, 1, 2, 3], direction = "forward", activations = ["softplus"], clip = 1.5} : (tensor<4x2x6xf32>, tensor<1x3x6xf32>, tensor<1x3x3xf32>, tensor<1x6xf32>) -> (tensor<4x1x2x3xf32>, tensor<1x2x3xf32>)
    func.return %0, %2, %4, %6, %8, %10, %12, %14, %16, %18, %20 : tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>, tensor<4x1x2x3xf32>
  }
}
