// One value as both operands.

// RUN-LEVELS: seed=80; precision=fp32,fp16

builtin.module {
  func.func @main(%x: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x32xf32>) {
    %0 = graph.mul %x, %x : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %1 = graph.matmul %x, %x : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %2 = graph.concat %x, %x {axis = 1} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x32xf32>
    func.return %0, %1, %2 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x32xf32>
  }
}
