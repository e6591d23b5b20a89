// Normalise, two products with GELU between, add: half a transformer layer.

// RUN-LEVELS: seed=74; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<19x32xf32>) -> tensor<19x32xf32> {
    %0 = graph.weight "5eed000000000001" : tensor<32xf32>
    %1 = graph.weight "5eed000000000002" : tensor<32xf32>
    %2 = graph.layer_norm %x, %0, %1 {axis = 1, epsilon = 1.0e-05} : (tensor<19x32xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<19x32xf32>
    %3 = graph.weight "5eed000000000003" : tensor<32x80xf32>
    %4 = graph.weight "5eed000000000004" : tensor<80xf32>
    %5 = graph.matmul %2, %3, %4 : (tensor<19x32xf32>, tensor<32x80xf32>, tensor<80xf32>) -> tensor<19x80xf32>
    %6 = graph.gelu %5 : (tensor<19x80xf32>) -> tensor<19x80xf32>
    %7 = graph.weight "5eed000000000005" : tensor<80x32xf32>
    %8 = graph.weight "5eed000000000006" : tensor<32xf32>
    %9 = graph.matmul %6, %7, %8 : (tensor<19x80xf32>, tensor<80x32xf32>, tensor<32xf32>) -> tensor<19x32xf32>
    %10 = graph.add %9, %x : (tensor<19x32xf32>, tensor<19x32xf32>) -> tensor<19x32xf32>
    func.return %10 : tensor<19x32xf32>
  }
}
