// Activations that are made of other functions, on both sides of their bends.

// RUN-LEVELS: seed=62; precision=fp32,fp16,bf16

func.func @main(%x: tensor<5x41xf32>) -> (tensor<5x41xf32>, tensor<5x41xf32>, tensor<5x41xf32>, tensor<5x41xf32>, tensor<5x41xf32>, tensor<5x41xf32>) {
  %0 = graph.selu %x {alpha = 1.67, gamma = 1.05} : (tensor<5x41xf32>) -> tensor<5x41xf32>
  %1 = graph.celu %x {alpha = 2.0} : (tensor<5x41xf32>) -> tensor<5x41xf32>
  %2 = graph.swish %x {alpha = 1.5} : (tensor<5x41xf32>) -> tensor<5x41xf32>
  %3 = graph.gelu_tanh %x : (tensor<5x41xf32>) -> tensor<5x41xf32>
  %4 = graph.shrink %0 {lambd = 0.5, bias = 0.5} : (tensor<5x41xf32>) -> tensor<5x41xf32>
  %5 = graph.thresholdedrelu %x {alpha = 0.0} : (tensor<5x41xf32>) -> tensor<5x41xf32>
  func.return %0, %1, %2, %3, %4, %5 : tensor<5x41xf32>, tensor<5x41xf32>, tensor<5x41xf32>, tensor<5x41xf32>, tensor<5x41xf32>, tensor<5x41xf32>
}
