// What is made of sums: norms, logarithms; infinities in log-sum-exp; integers.

// RUN-LEVELS: seed=101; precision=fp16,fp32; tolerance=4; %p=uniform(0.1, 3)

builtin.module {
  func.func @main(%x: tensor<4x6x50xf32>, %p: tensor<4x50xf32>, %i: tensor<4x50xi32>, %u: tensor<4x50xui8>) -> (tensor<4x6xf32>, tensor<4x50xf32>, tensor<4x1xf32>, tensor<50xf32>, tensor<4xi32>, tensor<50xi32>, tensor<4xui8>) {
    %0 = graph.reduce_l1 %x {axes = [2]} : (tensor<4x6x50xf32>) -> tensor<4x6xf32>
    %1 = graph.reduce_sum_square %x {axes = [1]} : (tensor<4x6x50xf32>) -> tensor<4x50xf32>
    %2 = graph.reduce_log_sum %p {axes = [1], keepdims = true} : (tensor<4x50xf32>) -> tensor<4x1xf32>
    %3 = graph.reduce_log_sum_exp %x {axes = [0, 1]} : (tensor<4x6x50xf32>) -> tensor<50xf32>
    %4 = graph.reduce_mean %i {axes = [1]} : (tensor<4x50xi32>) -> tensor<4xi32>
    %5 = graph.reduce_l1 %i {axes = [0]} : (tensor<4x50xi32>) -> tensor<50xi32>
    %6 = graph.reduce_max %u {axes = [1]} : (tensor<4x50xui8>) -> tensor<4xui8>
    func.return %0, %1, %2, %3, %4, %5, %6 : tensor<4x6xf32>, tensor<4x50xf32>, tensor<4x1xf32>, tensor<50xf32>, tensor<4xi32>, tensor<50xi32>, tensor<4xui8>
  }
}
