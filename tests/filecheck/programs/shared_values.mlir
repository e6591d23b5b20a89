// A value that several kernels read, and that is a result as well.

// RUN-LEVELS: seed=75; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<12x24xf32>) -> (tensor<12x24xf32>, tensor<12x24xf32>, tensor<12x24xf32>) {
    %0 = graph.weight "5eed000000000001" : tensor<24x24xf32>
    %1 = graph.matmul %x, %0 : (tensor<12x24xf32>, tensor<24x24xf32>) -> tensor<12x24xf32>
    %2 = graph.tanh %1 : (tensor<12x24xf32>) -> tensor<12x24xf32>
    %3 = graph.matmul %1, %0 : (tensor<12x24xf32>, tensor<24x24xf32>) -> tensor<12x24xf32>
    %4 = graph.matmul %2, %0 : (tensor<12x24xf32>, tensor<24x24xf32>) -> tensor<12x24xf32>
    %5 = graph.add %3, %4 : (tensor<12x24xf32>, tensor<12x24xf32>) -> tensor<12x24xf32>
    %6 = graph.add %5, %1 : (tensor<12x24xf32>, tensor<12x24xf32>) -> tensor<12x24xf32>
    func.return %1, %6, %2 : tensor<12x24xf32>, tensor<12x24xf32>, tensor<12x24xf32>
  }
}
