// More units than a block has, and more sequences than the cube has columns: blocks with tails.

// RUN-LEVELS: seed=307; precision=fp32,fp16; tolerance=40

builtin.module {
  func.func @main(%x: tensor<3x20x40xf32>) -> (tensor<3x1x20x130xf32>, tensor<1x20x130xf32>, tensor<3x1x20x130xf32>, tensor<1x20x130xf32>) {
    %w1 = graph.weight "5eed0000000000000001" : tensor<1x520x40xf32>
    %w2 = graph.weight "5eed0000000000000002" : tensor<1x520x130xf32>
    %w3 = graph.weight "5eed0000000000000003" : tensor<1x1040xf32>
    %0, %1, %2 = graph.lstm %x, %w1, %w2, %w3 {inputs = [0, 1, 2, 3], direction = "forward", activations = ["sigmoid", "tanh", "tanh"]} : (tensor<3x20x40xf32>, tensor<1x520x40xf32>, tensor<1x520x130xf32>, tensor<1x1040xf32>) -> (tensor<3x1x20x130xf32>, tensor<1x20x130xf32>, tensor<1x20x130xf32>)
    %w4 = graph.weight "5eed0000000000000004" : tensor<1x390x40xf32>
    %w5 = graph.weight "5eed0000000000000005" : tensor<1x390x130xf32>
    %w6 = graph.weight "5eed0000000000000006" : tensor<1x780xf32>
    %3, %4 = graph.gru %x, %w4, %w5, %w6 {inputs = [0, 1, 2, 3], direction = "forward", activations = ["sigmoid", "tanh"]} : (tensor<3x20x40xf32>, tensor<1x390x40xf32>, tensor<1x390x130xf32>, tensor<1x780xf32>) -> (tensor<3x1x20x130xf32>, tensor<1x20x130xf32>)
    func.return %0, %2, %3, %4 : tensor<3x1x20x130xf32>, tensor<1x20x130xf32>, tensor<3x1x20x130xf32>, tensor<1x20x130xf32>
  }
}
