// Operands repeated along inner, outer and middle axes, and numbers.

// RUN-LEVELS: seed=10; precision=fp32,fp16; tolerance=2

builtin.module {
  func.func @main(%x: tensor<3x5x7xf32>, %a: tensor<7xf32>, %b: tensor<5x1xf32>, %c: tensor<3x1x7xf32>, %d: tensor<1x5x1xf32>, %e: tensor<f32>, %f: tensor<3x1x1xf32>) -> (tensor<3x5x7xf32>, tensor<3x5x7xf32>, tensor<3x1x7xf32>) {
    %0 = graph.add %x, %a : (tensor<3x5x7xf32>, tensor<7xf32>) -> tensor<3x5x7xf32>
    %1 = graph.mul %0, %b : (tensor<3x5x7xf32>, tensor<5x1xf32>) -> tensor<3x5x7xf32>
    %2 = graph.sub %1, %c : (tensor<3x5x7xf32>, tensor<3x1x7xf32>) -> tensor<3x5x7xf32>
    %3 = graph.add %2, %d : (tensor<3x5x7xf32>, tensor<1x5x1xf32>) -> tensor<3x5x7xf32>
    %4 = graph.mul %3, %e : (tensor<3x5x7xf32>, tensor<f32>) -> tensor<3x5x7xf32>
    %5 = graph.add %4, %f : (tensor<3x5x7xf32>, tensor<3x1x1xf32>) -> tensor<3x5x7xf32>
    %6 = graph.add %b, %c : (tensor<5x1xf32>, tensor<3x1x7xf32>) -> tensor<3x5x7xf32>
    %7 = graph.mul %f, %a : (tensor<3x1x1xf32>, tensor<7xf32>) -> tensor<3x1x7xf32>
    func.return %5, %6, %7 : tensor<3x5x7xf32>, tensor<3x5x7xf32>, tensor<3x1x7xf32>
  }
}
