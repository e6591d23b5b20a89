// Products with vectors.

// RUN-LEVELS: fails=operands of a product are matrices

builtin.module {
  func.func @main(%x: tensor<5x16xf32>, %v: tensor<16xf32>, %u: tensor<5xf32>) -> (tensor<5xf32>, tensor<16xf32>, tensor<f32>) {
    %0 = graph.matmul %x, %v : (tensor<5x16xf32>, tensor<16xf32>) -> tensor<5xf32>
    %1 = graph.matmul %u, %x : (tensor<5xf32>, tensor<5x16xf32>) -> tensor<16xf32>
    %2 = graph.matmul %v, %v : (tensor<16xf32>, tensor<16xf32>) -> tensor<f32>
    func.return %0, %1, %2 : tensor<5xf32>, tensor<16xf32>, tensor<f32>
  }
}
