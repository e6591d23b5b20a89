// Tensors without axes, and of one element.

// RUN-LEVELS: seed=12; precision=fp32,fp16

builtin.module {
  func.func @main(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<1xf32>, %x: tensor<1x1x1xf32>) -> (tensor<f32>, tensor<1xf32>, tensor<f32>) {
    %0 = graph.add %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %1 = graph.mul %0, %c : (tensor<f32>, tensor<1xf32>) -> tensor<1xf32>
    %2 = graph.tanh %x : (tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
    %3 = graph.reduce_sum %2 {axes = [0, 1, 2]} : (tensor<1x1x1xf32>) -> tensor<f32>
    func.return %0, %1, %3 : tensor<f32>, tensor<1xf32>, tensor<f32>
  }
}
