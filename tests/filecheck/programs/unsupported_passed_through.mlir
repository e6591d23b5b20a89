// A result that is an input.

// RUN-LEVELS: fails=an output is written by a kernel

builtin.module {
  func.func @main(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
    %0 = graph.relu %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
    func.return %x, %0 : tensor<4x6xf32>, tensor<4x6xf32>
  }
}
