// Products whose right operand has more axes than the left one, all but the last two of extent 1.

// RUN-LEVELS: seed=134; precision=fp16,fp32; tolerance=2

builtin.module {
  func.func @main(%a: tensor<1x32x40xf32>, %b: tensor<1x1x40x67xf32>, %c: tensor<5x40xf32>) -> (tensor<1x1x32x67xf32>, tensor<1x1x5x67xf32>) {
    %0 = graph.matmul %a, %b : (tensor<1x32x40xf32>, tensor<1x1x40x67xf32>) -> tensor<1x1x32x67xf32>
    %1 = graph.matmul %c, %b : (tensor<5x40xf32>, tensor<1x1x40x67xf32>) -> tensor<1x1x5x67xf32>
    func.return %0, %1 : tensor<1x1x32x67xf32>, tensor<1x1x5x67xf32>
  }
}
