// Batches on both sides, on the left alone, and b transposed.

// RUN-LEVELS: seed=23; precision=fp32,fp16

builtin.module {
  func.func @main(%x: tensor<2x3x20x17xf32>, %y: tensor<2x3x17x9xf32>, %z: tensor<2x3x31x17xf32>, %w: tensor<17x24xf32>) -> (tensor<2x3x20x9xf32>, tensor<2x3x20x31xf32>, tensor<2x3x20x24xf32>) {
    %0 = graph.matmul %x, %y : (tensor<2x3x20x17xf32>, tensor<2x3x17x9xf32>) -> tensor<2x3x20x9xf32>
    %1 = graph.matmul %x, %z {trans_b = true} : (tensor<2x3x20x17xf32>, tensor<2x3x31x17xf32>) -> tensor<2x3x20x31xf32>
    %2 = graph.matmul %x, %w : (tensor<2x3x20x17xf32>, tensor<17x24xf32>) -> tensor<2x3x20x24xf32>
    func.return %0, %1, %2 : tensor<2x3x20x9xf32>, tensor<2x3x20x31xf32>, tensor<2x3x20x24xf32>
  }
}
