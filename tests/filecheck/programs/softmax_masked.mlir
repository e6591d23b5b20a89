// A mask of -1e9, a masked row of -inf, and a long row.

// RUN-LEVELS: seed=14; precision=fp32,fp16

builtin.module {
  func.func @main(%x: tensor<5x700xf32>, %m: tensor<5x700xi1>) -> tensor<5x700xf32> {
    %0 = graph.constant dense<-1.000000e+09> : tensor<f32>
    %1 = graph.where %m, %x, %0 : (tensor<5x700xi1>, tensor<5x700xf32>, tensor<f32>) -> tensor<5x700xf32>
    %2 = graph.softmax %1 {axes = [1]} : (tensor<5x700xf32>) -> tensor<5x700xf32>
    func.return %2 : tensor<5x700xf32>
  }
}
