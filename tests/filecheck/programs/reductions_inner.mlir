// Reductions over the last axis, kept and dropped, longer than eight lanes and shorter.

// RUN-LEVELS: seed=17; precision=fp32,fp16; tolerance=4

builtin.module {
  func.func @main(%x: tensor<7x37xf32>, %y: tensor<9x3xf32>) -> (tensor<7x1xf32>, tensor<7x1xf32>, tensor<7x1xf32>, tensor<7x1xf32>, tensor<7x1xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>) {
    %0 = graph.reduce_sum %x {axes = [1], keepdims = true} : (tensor<7x37xf32>) -> tensor<7x1xf32>
    %1 = graph.reduce_max %x {axes = [1], keepdims = true} : (tensor<7x37xf32>) -> tensor<7x1xf32>
    %2 = graph.reduce_min %x {axes = [1], keepdims = true} : (tensor<7x37xf32>) -> tensor<7x1xf32>
    %3 = graph.reduce_mean %x {axes = [1], keepdims = true} : (tensor<7x37xf32>) -> tensor<7x1xf32>
    %4 = graph.reduce_l2 %x {axes = [1], keepdims = true} : (tensor<7x37xf32>) -> tensor<7x1xf32>
    %5 = graph.reduce_sum %y {axes = [1]} : (tensor<9x3xf32>) -> tensor<9xf32>
    %6 = graph.reduce_prod %y {axes = [1]} : (tensor<9x3xf32>) -> tensor<9xf32>
    %7 = graph.reduce_mean %y {axes = [1]} : (tensor<9x3xf32>) -> tensor<9xf32>
    %8 = graph.reduce_max %y {axes = [1]} : (tensor<9x3xf32>) -> tensor<9xf32>
    func.return %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<7x1xf32>, tensor<7x1xf32>, tensor<7x1xf32>, tensor<7x1xf32>, tensor<7x1xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>
  }
}
