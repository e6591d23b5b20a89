// Rows that do not fit on chip are walked in chunks, with a tail.

// RUN-LEVELS: seed=104; precision=fp32; tolerance=8; targets=tiny

builtin.module {
  func.func @main(%x: tensor<3x20001xf32>, %y: tensor<2x9001xf32>) -> (tensor<3xf32>, tensor<3x20001xf32>, tensor<2x9001xf32>) {
    %0 = graph.weight "5eed000000000001" : tensor<9001xf32>
    %1 = graph.reduce_sum %x {axes = [1]} : (tensor<3x20001xf32>) -> tensor<3xf32>
    %2 = graph.softmax %x {axes = [1]} : (tensor<3x20001xf32>) -> tensor<3x20001xf32>
    %3 = graph.layer_norm %y, %0 {axis = 1, epsilon = 1.0e-05} : (tensor<2x9001xf32>, tensor<9001xf32>) -> tensor<2x9001xf32>
    func.return %1, %2, %3 : tensor<3xf32>, tensor<3x20001xf32>, tensor<2x9001xf32>
  }
}
