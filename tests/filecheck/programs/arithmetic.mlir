// Arithmetic of two operands, NaN, infinities and zeros among them.

// RUN-LEVELS: seed=1; precision=fp32; %x=special; %y=special

builtin.module {
  func.func @main(%x: tensor<5x23xf32>, %y: tensor<5x23xf32>) -> (tensor<5x23xf32>, tensor<5x23xf32>, tensor<5x23xf32>, tensor<5x23xf32>, tensor<5x23xf32>, tensor<5x23xf32>) {
    %0 = graph.add %x, %y : (tensor<5x23xf32>, tensor<5x23xf32>) -> tensor<5x23xf32>
    %1 = graph.sub %x, %y : (tensor<5x23xf32>, tensor<5x23xf32>) -> tensor<5x23xf32>
    %2 = graph.mul %x, %y : (tensor<5x23xf32>, tensor<5x23xf32>) -> tensor<5x23xf32>
    %3 = graph.div %x, %y : (tensor<5x23xf32>, tensor<5x23xf32>) -> tensor<5x23xf32>
    %4 = graph.max %x, %y : (tensor<5x23xf32>, tensor<5x23xf32>) -> tensor<5x23xf32>
    %5 = graph.min %x, %y : (tensor<5x23xf32>, tensor<5x23xf32>) -> tensor<5x23xf32>
    func.return %0, %1, %2, %3, %4, %5 : tensor<5x23xf32>, tensor<5x23xf32>, tensor<5x23xf32>, tensor<5x23xf32>, tensor<5x23xf32>, tensor<5x23xf32>
  }
}
