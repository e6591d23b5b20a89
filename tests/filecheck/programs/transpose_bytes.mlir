// Transposes and slices of bytes and truth values.

// RUN-LEVELS: seed=64

builtin.module {
  func.func @main(%a: tensor<33x18xi8>, %b: tensor<5x21xi1>, %c: tensor<9x10xi32>) -> (tensor<18x33xi8>, tensor<21x5xi1>, tensor<4x3xi32>) {
    %0 = graph.transpose %a {perm = [1, 0]} : (tensor<33x18xi8>) -> tensor<18x33xi8>
    %1 = graph.transpose %b {perm = [1, 0]} : (tensor<5x21xi1>) -> tensor<21x5xi1>
    %2 = graph.slice %c {starts = [1, 2], sizes = [4, 3], steps = [2, 3]} : (tensor<9x10xi32>) -> tensor<4x3xi32>
    func.return %0, %1, %2 : tensor<18x33xi8>, tensor<21x5xi1>, tensor<4x3xi32>
  }
}
