// A result that is a constant.

// RUN-LEVELS: fails=an output is written by a kernel

builtin.module {
  func.func @main(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>) {
    %0 = graph.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
    %1 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    func.return %0, %1 : tensor<2xf32>, tensor<4xf32>
  }
}
