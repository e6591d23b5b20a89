// Transposes of rank 2 to 5, with extents beyond a tile.

// RUN-LEVELS: seed=63; precision=fp32,fp16

builtin.module {
  func.func @main(%a: tensor<67x130xf32>, %b: tensor<3x17x20xf32>, %c: tensor<2x5x7x9xf32>, %d: tensor<2x3x4x5x6xf32>) -> (tensor<130x67xf32>, tensor<20x3x17xf32>, tensor<17x3x20xf32>, tensor<2x9x5x7xf32>, tensor<9x7x5x2xf32>, tensor<6x4x2x5x3xf32>) {
    %0 = graph.transpose %a {perm = [1, 0]} : (tensor<67x130xf32>) -> tensor<130x67xf32>
    %1 = graph.transpose %b {perm = [2, 0, 1]} : (tensor<3x17x20xf32>) -> tensor<20x3x17xf32>
    %2 = graph.transpose %b {perm = [1, 0, 2]} : (tensor<3x17x20xf32>) -> tensor<17x3x20xf32>
    %3 = graph.transpose %c {perm = [0, 3, 1, 2]} : (tensor<2x5x7x9xf32>) -> tensor<2x9x5x7xf32>
    %4 = graph.transpose %c {perm = [3, 2, 1, 0]} : (tensor<2x5x7x9xf32>) -> tensor<9x7x5x2xf32>
    %5 = graph.transpose %d {perm = [4, 2, 0, 3, 1]} : (tensor<2x3x4x5x6xf32>) -> tensor<6x4x2x5x3xf32>
    func.return %0, %1, %2, %3, %4, %5 : tensor<130x67xf32>, tensor<20x3x17xf32>, tensor<17x3x20xf32>, tensor<2x9x5x7xf32>, tensor<9x7x5x2xf32>, tensor<6x4x2x5x3xf32>
  }
}
