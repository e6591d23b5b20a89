// Repetition along inner, outer and new axes.

// RUN-LEVELS: seed=67; precision=fp32,fp16

builtin.module {
  func.func @main(%x: tensor<5x1xf32>, %y: tensor<1x6xf32>, %z: tensor<f32>) -> (tensor<5x20xf32>, tensor<3x7x6xf32>, tensor<4x4xf32>) {
    %0 = graph.expand %x {shape = [5, 20]} : (tensor<5x1xf32>) -> tensor<5x20xf32>
    %1 = graph.expand %y {shape = [3, 7, 6]} : (tensor<1x6xf32>) -> tensor<3x7x6xf32>
    %2 = graph.expand %z {shape = [4, 4]} : (tensor<f32>) -> tensor<4x4xf32>
    func.return %0, %1, %2 : tensor<5x20xf32>, tensor<3x7x6xf32>, tensor<4x4xf32>
  }
}
