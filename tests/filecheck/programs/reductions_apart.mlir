// A reduction of a sum whose operands do not cover the same axes: reduced axes that do not merge.

// RUN-LEVELS: seed=83; precision=fp32,fp16; tolerance=4

builtin.module {
  func.func @main(%x: tensor<3x5x12xf32>, %y: tensor<12xf32>) -> (tensor<3xf32>, tensor<3x5x12xf32>) {
    %0 = graph.add %x, %y : (tensor<3x5x12xf32>, tensor<12xf32>) -> tensor<3x5x12xf32>
    %1 = graph.reduce_sum %0 {axes = [1, 2]} : (tensor<3x5x12xf32>) -> tensor<3xf32>
    %2 = graph.mul %x, %y : (tensor<3x5x12xf32>, tensor<12xf32>) -> tensor<3x5x12xf32>
    %3 = graph.softmax %2 {axes = [0, 2]} : (tensor<3x5x12xf32>) -> tensor<3x5x12xf32>
    func.return %1, %3 : tensor<3xf32>, tensor<3x5x12xf32>
  }
}
