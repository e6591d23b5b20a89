// Product, bias, scale, activation and residual: one kernel; b transposed.

// RUN-LEVELS: seed=22; precision=fp32,fp16,bf16; tolerance=2

builtin.module {
  func.func @main(%x: tensor<50x70xf32>, %r: tensor<50x40xf32>) -> tensor<50x40xf32> {
    %0 = graph.weight "5eed000000000001" : tensor<40x70xf32>
    %1 = graph.weight "5eed000000000002" : tensor<40xf32>
    %2 = graph.matmul %x, %0, %1 {trans_b = true} : (tensor<50x70xf32>, tensor<40x70xf32>, tensor<40xf32>) -> tensor<50x40xf32>
    %3 = graph.gelu %2 : (tensor<50x40xf32>) -> tensor<50x40xf32>
    %4 = graph.add %3, %r : (tensor<50x40xf32>, tensor<50x40xf32>) -> tensor<50x40xf32>
    func.return %4 : tensor<50x40xf32>
  }
}
