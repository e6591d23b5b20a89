// Integers of 16 bits, which are i32: within their own range, with a zero point and without, of floats and of products.

// RUN-LEVELS: seed=137; precision=fp32; tolerance=2

builtin.module {
  func.func @main(%x: tensor<3x5x40xf32>, %p: tensor<6x40xi32>) -> (tensor<3x5x40xi32>, tensor<3x5x40xi32>, tensor<6x40xi32>, tensor<3x5x40xi8>, tensor<3x5x40xf32>) {
    %s = graph.constant dense<2.500000e-05> : tensor<f32>
    %z = graph.constant dense<32768> : tensor<i32>
    %0 = graph.quantize %x, %s, %z {limits = [0, 65535]} : (tensor<3x5x40xf32>, tensor<f32>, tensor<i32>) -> tensor<3x5x40xi32>
    %1 = graph.quantize %x, %s {limits = [-32768, 32767]} : (tensor<3x5x40xf32>, tensor<f32>) -> tensor<3x5x40xi32>
    %t = graph.constant dense<6.553600e+04> : tensor<f32>
    %2 = graph.requantize %p, %t, %z {limits = [0, 65535]} : (tensor<6x40xi32>, tensor<f32>, tensor<i32>) -> tensor<6x40xi32>
    %u = graph.constant dense<0.25> : tensor<f32>
    %4 = graph.constant dense<3> : tensor<i8>
    %5 = graph.quantize %x, %u, %4 {limits = [-8, 7]} : (tensor<3x5x40xf32>, tensor<f32>, tensor<i8>) -> tensor<3x5x40xi8>
    %6 = graph.dequantize %0, %s, %z : (tensor<3x5x40xi32>, tensor<f32>, tensor<i32>) -> tensor<3x5x40xf32>
    func.return %0, %1, %2, %5, %6 : tensor<3x5x40xi32>, tensor<3x5x40xi32>, tensor<6x40xi32>, tensor<3x5x40xi8>, tensor<3x5x40xf32>
  }
}
