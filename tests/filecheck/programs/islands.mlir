// An f32 island inside f16: the sum of squares outgrows f16 and ends at the quotient.

// RUN-LEVELS: seed=9; precision=fp16,bf16,fp32; %x=uniform(-200, 200)

builtin.module {
  func.func @main(%x: tensor<12x40xf32>) -> tensor<12x40xf32> {
    %0 = graph.mul %x, %x : (tensor<12x40xf32>, tensor<12x40xf32>) -> tensor<12x40xf32>
    %1 = graph.reduce_sum %0 {axes = [1], keepdims = true} : (tensor<12x40xf32>) -> tensor<12x1xf32>
    %2 = graph.constant dense<1.000000e-12> : tensor<f32>
    %3 = graph.add %1, %2 : (tensor<12x1xf32>, tensor<f32>) -> tensor<12x1xf32>
    %4 = graph.sqrt %3 : (tensor<12x1xf32>) -> tensor<12x1xf32>
    %5 = graph.div %x, %4 : (tensor<12x40xf32>, tensor<12x1xf32>) -> tensor<12x40xf32>
    %6 = graph.tanh %5 : (tensor<12x40xf32>) -> tensor<12x40xf32>
    func.return %6 : tensor<12x40xf32>
  }
}
