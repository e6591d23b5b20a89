// Bytes from floats and from exact products, by tensor and by channel; floats from bytes; a range found at run time.

// RUN-LEVELS: seed=131; precision=fp32; tolerance=2

builtin.module {
  func.func @main(%x: tensor<3x5x40xf32>, %q: tensor<3x5x40xui8>, %p: tensor<6x40xi32>) -> (tensor<3x5x40xi8>, tensor<3x5x40xui8>, tensor<6x40xui8>, tensor<3x5x40xf32>, tensor<6x40xf32>, tensor<f32>) {
    %s = graph.constant dense<2.500000e-01> : tensor<f32>
    %z = graph.constant dense<-3> : tensor<i8>
    %0 = graph.quantize %x, %s, %z : (tensor<3x5x40xf32>, tensor<f32>, tensor<i8>) -> tensor<3x5x40xi8>
    %t = graph.constant dense<[[[0.5], [0.25], [0.125], [1.0], [4.0]]]> : tensor<1x5x1xf32>
    %u = graph.constant dense<[[[5], [6], [7], [8], [9]]]> : tensor<1x5x1xui8>
    %1 = graph.quantize %x, %t, %u : (tensor<3x5x40xf32>, tensor<1x5x1xf32>, tensor<1x5x1xui8>) -> tensor<3x5x40xui8>
    %w = graph.constant dense<128> : tensor<ui8>
    %2 = graph.requantize %p, %s, %w : (tensor<6x40xi32>, tensor<f32>, tensor<ui8>) -> tensor<6x40xui8>
    %3 = graph.dequantize %q, %t, %u : (tensor<3x5x40xui8>, tensor<1x5x1xf32>, tensor<1x5x1xui8>) -> tensor<3x5x40xf32>
    %4 = graph.dequantize %p, %s : (tensor<6x40xi32>, tensor<f32>) -> tensor<6x40xf32>
    %5, %6 = graph.dynamic_scale %x : (tensor<3x5x40xf32>) -> (tensor<f32>, tensor<ui8>)
    func.return %0, %1, %2, %3, %4, %5 : tensor<3x5x40xi8>, tensor<3x5x40xui8>, tensor<6x40xui8>, tensor<3x5x40xf32>, tensor<6x40xf32>, tensor<f32>
  }
}
