// Matrix products with tails of 1, 15 and 17 in m, n and k.

// RUN-LEVELS: seed=21; precision=fp32,fp16

builtin.module {
  func.func @main(%x: tensor<17x15xf32>, %y: tensor<15x1xf32>, %z: tensor<1x33xf32>, %w: tensor<33x17xf32>) -> (tensor<17x33xf32>, tensor<17x17xf32>, tensor<15x33xf32>) {
    %0 = graph.matmul %x, %y : (tensor<17x15xf32>, tensor<15x1xf32>) -> tensor<17x1xf32>
    %1 = graph.matmul %0, %z : (tensor<17x1xf32>, tensor<1x33xf32>) -> tensor<17x33xf32>
    %2 = graph.matmul %1, %w : (tensor<17x33xf32>, tensor<33x17xf32>) -> tensor<17x17xf32>
    %3 = graph.matmul %y, %z : (tensor<15x1xf32>, tensor<1x33xf32>) -> tensor<15x33xf32>
    func.return %1, %2, %3 : tensor<17x33xf32>, tensor<17x17xf32>, tensor<15x33xf32>
  }
}
