// Batch axes that broadcast: on one side, on both, and groups of queries that share a key.

// RUN-LEVELS: seed=93; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<2x1x8x16xf32>, %y: tensor<3x16x8xf32>, %q: tensor<2x3x4x5x16xf32>, %k: tensor<2x3x1x7x16xf32>, %w: tensor<9x16xf32>, %b: tensor<8xf32>) -> (tensor<2x3x8x8xf32>, tensor<2x3x4x5x7xf32>, tensor<3x9x8xf32>) {
    %0 = graph.matmul %x, %y, %b : (tensor<2x1x8x16xf32>, tensor<3x16x8xf32>, tensor<8xf32>) -> tensor<2x3x8x8xf32>
    %1 = graph.matmul %q, %k {trans_b = true} : (tensor<2x3x4x5x16xf32>, tensor<2x3x1x7x16xf32>) -> tensor<2x3x4x5x7xf32>
    %2 = graph.matmul %w, %y : (tensor<9x16xf32>, tensor<3x16x8xf32>) -> tensor<3x9x8xf32>
    func.return %0, %1, %2 : tensor<2x3x8x8xf32>, tensor<2x3x4x5x7xf32>, tensor<3x9x8xf32>
  }
}
