// Layer normalisation over the last axis, with scale and shift; over two axes, with scale alone.

// RUN-LEVELS: seed=15; precision=fp32,fp16; tolerance=2

builtin.module {
  func.func @main(%x: tensor<10x96xf32>, %y: tensor<4x6x18xf32>) -> (tensor<10x96xf32>, tensor<4x6x18xf32>) {
    %0 = graph.weight "5eed000000000001" : tensor<96xf32>
    %1 = graph.weight "5eed000000000002" : tensor<96xf32>
    %2 = graph.weight "5eed000000000003" : tensor<6x18xf32>
    %3 = graph.layer_norm %x, %0, %1 {axis = 1, epsilon = 1.0e-05} : (tensor<10x96xf32>, tensor<96xf32>, tensor<96xf32>) -> tensor<10x96xf32>
    %4 = graph.layer_norm %y, %2 {axis = 1, epsilon = 1.0e-05} : (tensor<4x6x18xf32>, tensor<6x18xf32>) -> tensor<4x6x18xf32>
    func.return %3, %4 : tensor<10x96xf32>, tensor<4x6x18xf32>
  }
}
