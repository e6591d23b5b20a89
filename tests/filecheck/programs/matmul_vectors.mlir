// Products with vectors.

// RUN-LEVELS: seed=94; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<5x16xf32>, %v: tensor<16xf32>, %u: tensor<5xf32>, %z: tensor<3x5x16xf32>) -> (tensor<5xf32>, tensor<16xf32>, tensor<f32>, tensor<3x5xf32>, tensor<3x16xf32>) {
    %0 = graph.matmul %x, %v : (tensor<5x16xf32>, tensor<16xf32>) -> tensor<5xf32>
    %1 = graph.matmul %u, %x : (tensor<5xf32>, tensor<5x16xf32>) -> tensor<16xf32>
    %2 = graph.matmul %v, %v : (tensor<16xf32>, tensor<16xf32>) -> tensor<f32>
    %3 = graph.matmul %z, %v : (tensor<3x5x16xf32>, tensor<16xf32>) -> tensor<3x5xf32>
    %4 = graph.matmul %u, %z : (tensor<5xf32>, tensor<3x5x16xf32>) -> tensor<3x16xf32>
    func.return %0, %1, %2, %3, %4 : tensor<5xf32>, tensor<16xf32>, tensor<f32>, tensor<3x5xf32>, tensor<3x16xf32>
  }
}
