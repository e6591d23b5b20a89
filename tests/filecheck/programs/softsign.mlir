// Softsign, of ordinary numbers and of extreme ones.

// RUN-LEVELS: seed=41; precision=fp32,fp16; %y=special

func.func @main(%x: tensor<3x37xf32>, %y: tensor<32xf32>) -> (tensor<3x37xf32>, tensor<32xf32>) {
  %0 = graph.softsign %x : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %1 = graph.softsign %y : (tensor<32xf32>) -> tensor<32xf32>
  func.return %0, %1 : tensor<3x37xf32>, tensor<32xf32>
}
