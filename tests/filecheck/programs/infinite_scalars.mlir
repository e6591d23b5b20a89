// Scalars of an instruction that are infinite or no number.

// RUN-LEVELS: seed=91; precision=fp32,fp16

func.func @main(%x: tensor<3x7xf32>, %m: tensor<3x7xi1>) -> (tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7xf32>) {
  %0 = graph.clip %x {lo = -1.0} : (tensor<3x7xf32>) -> tensor<3x7xf32>
  %inf = graph.constant dense<0xFF800000> : tensor<f32>
  %1 = graph.where %m, %x, %inf : (tensor<3x7xi1>, tensor<3x7xf32>, tensor<f32>) -> tensor<3x7xf32>
  %2 = graph.max %x, %inf : (tensor<3x7xf32>, tensor<f32>) -> tensor<3x7xf32>
  func.return %0, %1, %2 : tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7xf32>
}
