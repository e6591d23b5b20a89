// Pools over the whole image.

// RUN-LEVELS: seed=62; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<2x21x7x9xf32>) -> (tensor<2x21x1x1xf32>, tensor<2x21x1x1xf32>) {
    %0 = graph.global_average_pool %x : (tensor<2x21x7x9xf32>) -> tensor<2x21x1x1xf32>
    %1 = graph.global_max_pool %x : (tensor<2x21x7x9xf32>) -> tensor<2x21x1x1xf32>
    func.return %0, %1 : tensor<2x21x1x1xf32>, tensor<2x21x1x1xf32>
  }
}
