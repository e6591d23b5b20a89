// Floats of 8 bits: each format, saturated and not, of quotients as well.

// RUN-LEVELS: seed=139; precision=fp32; tolerance=2

builtin.module {
  func.func @main(%x: tensor<3x5x40xf32>) -> (tensor<3x5x40xf32>, tensor<3x5x40xf32>, tensor<3x5x40xf32>, tensor<3x5x40xf32>) {
    %s = graph.constant dense<6.250000e-02> : tensor<f32>
    %0 = graph.round_float %x, %s {format = "float8_e4m3fn", saturate = true} : (tensor<3x5x40xf32>, tensor<f32>) -> tensor<3x5x40xf32>
    %1 = graph.round_float %x {format = "float8_e4m3fnuz", saturate = true} : (tensor<3x5x40xf32>) -> tensor<3x5x40xf32>
    %2 = graph.round_float %x, %s {format = "float8_e5m2"} : (tensor<3x5x40xf32>, tensor<f32>) -> tensor<3x5x40xf32>
    %3 = graph.round_float %x {format = "float8_e5m2fnuz"} : (tensor<3x5x40xf32>) -> tensor<3x5x40xf32>
    func.return %0, %1, %2, %3 : tensor<3x5x40xf32>, tensor<3x5x40xf32>, tensor<3x5x40xf32>, tensor<3x5x40xf32>
  }
}
