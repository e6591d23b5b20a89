// Results that no kernel writes of its own: an input, a constant, a value twice, a value under another shape.

// RUN-LEVELS: seed=108; precision=fp32,fp16

builtin.module {
  func.func @main(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<2xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<24xf32>) {
    %0 = graph.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
    %1 = graph.relu %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %2 = graph.reshape %1 {shape = [24]} : (tensor<4x6xf32>) -> tensor<24xf32>
    func.return %x, %0, %1, %1, %2 : tensor<4x6xf32>, tensor<2xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<24xf32>
  }
}
