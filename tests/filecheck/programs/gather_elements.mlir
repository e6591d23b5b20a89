// An index for each element, on each axis; tuples of indices, with a batch.

// RUN-LEVELS: seed=9; precision=fp32,bf16

builtin.module {
  func.func @main(%x: tensor<10x11x12xf32>, %i: tensor<10x11x4xi32>, %j: tensor<7x11x12xi32>, %k: tensor<6x2xi32>, %l: tensor<10x3x1xi32>) -> (tensor<10x11x4xf32>, tensor<7x11x12xf32>, tensor<10x11x4xf32>, tensor<6x12xf32>, tensor<10x3x12xf32>) {
    %0 = graph.gather_elements %x, %i {axis = 2} : (tensor<10x11x12xf32>, tensor<10x11x4xi32>) -> tensor<10x11x4xf32>
    %1 = graph.gather_elements %x, %j {axis = 0} : (tensor<10x11x12xf32>, tensor<7x11x12xi32>) -> tensor<7x11x12xf32>
    %2 = graph.gather_elements %x, %i {axis = 1} : (tensor<10x11x12xf32>, tensor<10x11x4xi32>) -> tensor<10x11x4xf32>
    %3 = graph.gather_nd %x, %k : (tensor<10x11x12xf32>, tensor<6x2xi32>) -> tensor<6x12xf32>
    %4 = graph.gather_nd %x, %l {batch_dims = 1} : (tensor<10x11x12xf32>, tensor<10x3x1xi32>) -> tensor<10x3x12xf32>
    func.return %0, %1, %2, %3, %4 : tensor<10x11x4xf32>, tensor<7x11x12xf32>, tensor<10x11x4xf32>, tensor<6x12xf32>, tensor<10x3x12xf32>
  }
}
