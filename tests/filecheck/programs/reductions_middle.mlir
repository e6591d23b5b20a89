// Reductions over a middle axis and over the first.

// RUN-LEVELS: seed=18; precision=fp32,fp16; tolerance=4

builtin.module {
  func.func @main(%x: tensor<5x19x21xf32>) -> (tensor<5x21xf32>, tensor<5x21xf32>, tensor<5x21xf32>, tensor<5x21xf32>, tensor<1x19x21xf32>, tensor<1x19x21xf32>, tensor<1x19x21xf32>, tensor<1x19x21xf32>) {
    %0 = graph.reduce_sum %x {axes = [1]} : (tensor<5x19x21xf32>) -> tensor<5x21xf32>
    %1 = graph.reduce_max %x {axes = [1]} : (tensor<5x19x21xf32>) -> tensor<5x21xf32>
    %2 = graph.reduce_min %x {axes = [1]} : (tensor<5x19x21xf32>) -> tensor<5x21xf32>
    %3 = graph.reduce_mean %x {axes = [1]} : (tensor<5x19x21xf32>) -> tensor<5x21xf32>
    %4 = graph.reduce_sum %x {axes = [0], keepdims = true} : (tensor<5x19x21xf32>) -> tensor<1x19x21xf32>
    %5 = graph.reduce_max %x {axes = [0], keepdims = true} : (tensor<5x19x21xf32>) -> tensor<1x19x21xf32>
    %6 = graph.reduce_prod %x {axes = [0], keepdims = true} : (tensor<5x19x21xf32>) -> tensor<1x19x21xf32>
    %7 = graph.reduce_mean %x {axes = [0], keepdims = true} : (tensor<5x19x21xf32>) -> tensor<1x19x21xf32>
    func.return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<5x21xf32>, tensor<5x21xf32>, tensor<5x21xf32>, tensor<5x21xf32>, tensor<1x19x21xf32>, tensor<1x19x21xf32>, tensor<1x19x21xf32>, tensor<1x19x21xf32>
  }
}
