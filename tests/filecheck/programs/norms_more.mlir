// Normalisations by root mean square, by a norm, over chosen axes and across channels.

// RUN-LEVELS: seed=100; precision=fp16,fp32; tolerance=8

builtin.module {
  func.func @main(%x: tensor<3x5x40xf32>, %y: tensor<2x6x5x4xf32>) -> (tensor<3x5x40xf32>, tensor<3x5x40xf32>, tensor<3x5x40xf32>, tensor<2x6x5x4xf32>, tensor<2x6x5x4xf32>) {
    %0 = graph.weight "5eed000000000001" : tensor<40xf32>
    %1 = graph.rms_norm %x, %0 {axis = 2, epsilon = 1.0e-05} : (tensor<3x5x40xf32>, tensor<40xf32>) -> tensor<3x5x40xf32>
    %2 = graph.lp_norm %x {axis = 2, p = 2} : (tensor<3x5x40xf32>) -> tensor<3x5x40xf32>
    %3 = graph.lp_norm %x {axis = 1, p = 1} : (tensor<3x5x40xf32>) -> tensor<3x5x40xf32>
    %4 = graph.mean_variance_norm %y {axes = [0, 2, 3]} : (tensor<2x6x5x4xf32>) -> tensor<2x6x5x4xf32>
    %5 = graph.lrn %y {size = 4, alpha = 0.1, beta = 0.75, bias = 1.0} : (tensor<2x6x5x4xf32>) -> tensor<2x6x5x4xf32>
    func.return %1, %2, %3, %4, %5 : tensor<3x5x40xf32>, tensor<3x5x40xf32>, tensor<3x5x40xf32>, tensor<2x6x5x4xf32>, tensor<2x6x5x4xf32>
  }
}
