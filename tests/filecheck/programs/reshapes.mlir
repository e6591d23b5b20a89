// Reshapes move nothing: between kernels, of an input, of a result.

// RUN-LEVELS: seed=68; precision=fp32,fp16; tolerance=2

builtin.module {
  func.func @main(%x: tensor<6x20xf32>, %y: tensor<3x40xf32>) -> tensor<120xf32> {
    %0 = graph.reshape %x {shape = [3, 40]} : (tensor<6x20xf32>) -> tensor<3x40xf32>
    %1 = graph.add %0, %y : (tensor<3x40xf32>, tensor<3x40xf32>) -> tensor<3x40xf32>
    %2 = graph.reshape %1 {shape = [2, 3, 20]} : (tensor<3x40xf32>) -> tensor<2x3x20xf32>
    %3 = graph.softmax %2 {axes = [1]} : (tensor<2x3x20xf32>) -> tensor<2x3x20xf32>
    %4 = graph.reshape %3 {shape = [120]} : (tensor<2x3x20xf32>) -> tensor<120xf32>
    func.return %4 : tensor<120xf32>
  }
}
