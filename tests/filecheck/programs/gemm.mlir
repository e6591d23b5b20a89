// General products: alpha, beta, transposed operands.

// RUN-LEVELS: seed=27; precision=fp32,fp16; tolerance=2

builtin.module {
  func.func @main(%x: tensor<33x19xf32>, %d: tensor<19x1xf32>) -> (tensor<19x21xf32>, tensor<19x21xf32>) {
    %0 = graph.weight "5eed000000000001" : tensor<33x21xf32>
    %1 = graph.weight "5eed000000000002" : tensor<21xf32>
    %2 = graph.gemm %x, %0, %1 {trans_a = true} : (tensor<33x19xf32>, tensor<33x21xf32>, tensor<21xf32>) -> tensor<19x21xf32>
    %3 = graph.gemm %x, %0, %d {trans_a = true, alpha = 0.5, beta = 2.0} : (tensor<33x19xf32>, tensor<33x21xf32>, tensor<19x1xf32>) -> tensor<19x21xf32>
    func.return %2, %3 : tensor<19x21xf32>, tensor<19x21xf32>
  }
}
