// Mish, of ordinary numbers and of extreme ones.

// RUN-LEVELS: seed=43; precision=fp32,fp16; %y=special

func.func @main(%x: tensor<3x37xf32>, %y: tensor<32xf32>) -> (tensor<3x37xf32>, tensor<32xf32>) {
  %0 = graph.mish %x : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %1 = graph.mish %y : (tensor<32xf32>) -> tensor<32xf32>
  func.return %0, %1 : tensor<3x37xf32>, tensor<32xf32>
}
