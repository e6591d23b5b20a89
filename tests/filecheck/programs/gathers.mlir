// Gathers with computed indices: rows of the first, a middle and the last axis, negative indices, a batch.

// RUN-LEVELS: seed=7; precision=fp32,fp16

builtin.module {
  func.func @main(%t: tensor<20x37xf32>, %i: tensor<11xi32>, %m: tensor<3x13x5xf32>, %j: tensor<2x3xi32>, %b: tensor<4x12x3xui8>, %l: tensor<4x6xi32>) -> (tensor<11x37xf32>, tensor<3x2x3x5xf32>, tensor<20x2x3xf32>, tensor<4x6x3xui8>) {
    %0 = graph.gather %t, %i {axis = 0} : (tensor<20x37xf32>, tensor<11xi32>) -> tensor<11x37xf32>
    %1 = graph.gather %m, %j {axis = 1} : (tensor<3x13x5xf32>, tensor<2x3xi32>) -> tensor<3x2x3x5xf32>
    %2 = graph.gather %t, %j {axis = 1} : (tensor<20x37xf32>, tensor<2x3xi32>) -> tensor<20x2x3xf32>
    %3 = graph.gather %b, %l {axis = 1, batch_dims = 1} : (tensor<4x12x3xui8>, tensor<4x6xi32>) -> tensor<4x6x3xui8>
    func.return %0, %1, %2, %3 : tensor<11x37xf32>, tensor<3x2x3x5xf32>, tensor<20x2x3xf32>, tensor<4x6x3xui8>
  }
}
