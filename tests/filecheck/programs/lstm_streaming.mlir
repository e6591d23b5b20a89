// One step of a stream: states come in and go out; two layers.

// RUN-LEVELS: seed=306; precision=fp32,fp16; tolerance=20

builtin.module {
  func.func @main(%x: tensor<1x1x32xf32>, %h: tensor<1x1x32xf32>, %c: tensor<1x1x32xf32>) -> (tensor<1x1x1x32xf32>, tensor<1x1x32xf32>, tensor<1x1x32xf32>, tensor<1x1x1x32xf32>, tensor<1x1x32xf32>, tensor<1x1x32xf32>, tensor<1x1x1x32xf32>, tensor<1x1x32xf32>) {
    %w1 = graph.weight "5eed0000000000000001" : tensor<1x128x32xf32>
    %w2 = graph.weight "5eed0000000000000002" : tensor<1x128x32xf32>
    %w3 = graph.weight "5eed0000000000000003" : tensor<1x256xf32>
    %0, %1, %2 = graph.lstm %x, %w1, %w2, %w3, %h, %c {inputs = [0, 1, 2, 3, 5, 6], direction = "forward", activations = ["sigmoid", "tanh", "tanh"]} : (tensor<1x1x32xf32>, tensor<1x128x32xf32>, tensor<1x128x32xf32>, tensor<1x256xf32>, tensor<1x1x32xf32>, tensor<1x1x32xf32>) -> (tensor<1x1x1x32xf32>, tensor<1x1x32xf32>, tensor<1x1x32xf32>)
    %y = graph.reshape %0 {shape = [1, 1, 32]} : (tensor<1x1x1x32xf32>) -> tensor<1x1x32xf32>
    %w4 = graph.weight "5eed0000000000000004" : tensor<1x128x32xf32>
    %w5 = graph.weight "5eed0000000000000005" : tensor<1x128x32xf32>
    %w6 = graph.weight "5eed0000000000000006" : tensor<1x256xf32>
    %3, %4, %5 = graph.lstm %y, %w4, %w5, %w6, %h, %c {inputs = [0, 1, 2, 3, 5, 6], direction = "forward", activations = ["sigmoid", "tanh", "tanh"]} : (tensor<1x1x32xf32>, tensor<1x128x32xf32>, tensor<1x128x32xf32>, tensor<1x256xf32>, tensor<1x1x32xf32>, tensor<1x1x32xf32>) -> (tensor<1x1x1x32xf32>, tensor<1x1x32xf32>, tensor<1x1x32xf32>)
    %w7 = graph.weight "5eed0000000000000007" : tensor<1x96x32xf32>
    %w8 = graph.weight "5eed0000000000000008" : tensor<1x96x32xf32>
    %w9 = graph.weight "5eed0000000000000009" : tensor<1x192xf32>
    %6, %7 = graph.gru %x, %w7, %w8, %w9, %h {inputs = [0, 1, 2, 3, 5], direction = "forward", activations = ["sigmoid", "tanh"]} : (tensor<1x1x32xf32>, tensor<1x96x32xf32>, tensor<1x96x32xf32>, tensor<1x192xf32>, tensor<1x1x32xf32>) -> (tensor<1x1x1x32xf32>, tensor<1x1x32xf32>)
    func.return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<1x1x1x32xf32>, tensor<1x1x32xf32>, tensor<1x1x32xf32>, tensor<1x1x1x32xf32>, tensor<1x1x32xf32>, tensor<1x1x32xf32>, tensor<1x1x1x32xf32>, tensor<1x1x32xf32>
  }
}
