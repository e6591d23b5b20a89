// Reduced axes that do not fit on chip, inner, outer and apart.

// RUN-LEVELS: seed=102; targets=tiny; tolerance=20

builtin.module {
  func.func @main(%x: tensor<2x30000xf32>, %y: tensor<20000x3xf32>, %z: tensor<30x4x900xf32>, %v: tensor<9000x3x4xf32>) -> (tensor<2x1xf32>, tensor<3xf32>, tensor<4xf32>, tensor<2x30000xf32>, tensor<1x3x1xf32>) {
    %0 = graph.reduce_mean %x {axes = [1], keepdims = true} : (tensor<2x30000xf32>) -> tensor<2x1xf32>
    %1 = graph.reduce_sum %y {axes = [0]} : (tensor<20000x3xf32>) -> tensor<3xf32>
    %2 = graph.reduce_max %z {axes = [0, 2]} : (tensor<30x4x900xf32>) -> tensor<4xf32>
    %3 = graph.lp_norm %x {axis = 1, p = 2} : (tensor<2x30000xf32>) -> tensor<2x30000xf32>
    %4 = graph.reduce_sum %v {axes = [0, 2], keepdims = true} : (tensor<9000x3x4xf32>) -> tensor<1x3x1xf32>
    func.return %0, %1, %2, %3, %4 : tensor<2x1xf32>, tensor<3xf32>, tensor<4xf32>, tensor<2x30000xf32>, tensor<1x3x1xf32>
  }
}
