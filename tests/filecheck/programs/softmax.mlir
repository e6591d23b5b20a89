// Softmax over the last, the middle, the first and two axes.

// RUN-LEVELS: seed=13; precision=fp32,fp16

builtin.module {
  func.func @main(%x: tensor<6x9x20xf32>) -> (tensor<6x9x20xf32>, tensor<6x9x20xf32>, tensor<6x9x20xf32>, tensor<6x9x20xf32>, tensor<6x9x20xf32>) {
    %0 = graph.softmax %x {axes = [2]} : (tensor<6x9x20xf32>) -> tensor<6x9x20xf32>
    %1 = graph.softmax %x {axes = [1]} : (tensor<6x9x20xf32>) -> tensor<6x9x20xf32>
    %2 = graph.softmax %x {axes = [0]} : (tensor<6x9x20xf32>) -> tensor<6x9x20xf32>
    %3 = graph.softmax %x {axes = [1, 2]} : (tensor<6x9x20xf32>) -> tensor<6x9x20xf32>
    %4 = graph.log_softmax %x {axes = [2]} : (tensor<6x9x20xf32>) -> tensor<6x9x20xf32>
    func.return %0, %1, %2, %3, %4 : tensor<6x9x20xf32>, tensor<6x9x20xf32>, tensor<6x9x20xf32>, tensor<6x9x20xf32>, tensor<6x9x20xf32>
  }
}
