// Scatters with computed indices, some of them equal: the last update counts.

// RUN-LEVELS: seed=10; precision=fp32,fp16

builtin.module {
  func.func @main(%x: tensor<10x11x12xf32>, %i: tensor<10x5x4xi32>, %u: tensor<10x5x4xf32>, %k: tensor<30x2xi32>, %v: tensor<30x12xf32>, %b: tensor<40xi1>, %j: tensor<9x1xi32>, %w: tensor<9xi1>) -> (tensor<10x11x12xf32>, tensor<10x11x12xf32>, tensor<10x11x12xf32>, tensor<40xi1>) {
    %0 = graph.scatter_elements %x, %i, %u {axis = 1} : (tensor<10x11x12xf32>, tensor<10x5x4xi32>, tensor<10x5x4xf32>) -> tensor<10x11x12xf32>
    %1 = graph.scatter_elements %x, %i, %u {axis = 2} : (tensor<10x11x12xf32>, tensor<10x5x4xi32>, tensor<10x5x4xf32>) -> tensor<10x11x12xf32>
    %2 = graph.scatter_nd %x, %k, %v : (tensor<10x11x12xf32>, tensor<30x2xi32>, tensor<30x12xf32>) -> tensor<10x11x12xf32>
    %3 = graph.scatter_nd %b, %j, %w : (tensor<40xi1>, tensor<9x1xi32>, tensor<9xi1>) -> tensor<40xi1>
    func.return %0, %1, %2, %3 : tensor<10x11x12xf32>, tensor<10x11x12xf32>, tensor<10x11x12xf32>, tensor<40xi1>
  }
}
