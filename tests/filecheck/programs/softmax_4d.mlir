// Attention weights of several heads with a mask that the heads share; rows of one element.

// RUN-LEVELS: seed=84; precision=fp16,fp32

builtin.module {
  func.func @main(%x: tensor<2x3x11x11xf32>, %m: tensor<1x1x11x11xf32>, %k: tensor<2x1x1x11xf32>, %o: tensor<6x1xf32>) -> (tensor<2x3x11x11xf32>, tensor<2x3x11x11xf32>, tensor<6x1xf32>) {
    %0 = graph.add %x, %m : (tensor<2x3x11x11xf32>, tensor<1x1x11x11xf32>) -> tensor<2x3x11x11xf32>
    %1 = graph.add %x, %k : (tensor<2x3x11x11xf32>, tensor<2x1x1x11xf32>) -> tensor<2x3x11x11xf32>
    %2 = graph.softmax %0 {axes = [3]} : (tensor<2x3x11x11xf32>) -> tensor<2x3x11x11xf32>
    %3 = graph.softmax %1 {axes = [3]} : (tensor<2x3x11x11xf32>) -> tensor<2x3x11x11xf32>
    %4 = graph.softmax %o {axes = [1]} : (tensor<6x1xf32>) -> tensor<6x1xf32>
    func.return %2, %3, %4 : tensor<2x3x11x11xf32>, tensor<2x3x11x11xf32>, tensor<6x1xf32>
  }
}
