// Results of one kernel and of several, the same one twice.

// RUN-LEVELS: seed=76; precision=fp32,fp16

builtin.module {
  func.func @main(%x: tensor<8x30xf32>, %y: tensor<8x30xf32>) -> (tensor<8x30xf32>, tensor<8x1xf32>, tensor<8x30xf32>, tensor<30x8xf32>) {
    %0 = graph.add %x, %y : (tensor<8x30xf32>, tensor<8x30xf32>) -> tensor<8x30xf32>
    %1 = graph.reduce_sum %0 {axes = [1], keepdims = true} : (tensor<8x30xf32>) -> tensor<8x1xf32>
    %2 = graph.sub %0, %1 : (tensor<8x30xf32>, tensor<8x1xf32>) -> tensor<8x30xf32>
    %3 = graph.transpose %0 {perm = [1, 0]} : (tensor<8x30xf32>) -> tensor<30x8xf32>
    func.return %0, %1, %2, %3 : tensor<8x30xf32>, tensor<8x1xf32>, tensor<8x30xf32>, tensor<30x8xf32>
  }
}
