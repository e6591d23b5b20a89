// K beyond 2048: sums of segments are folded; the last one is a tail.

// RUN-LEVELS: seed=26; precision=fp16,fp32; tolerance=8

builtin.module {
  func.func @main(%x: tensor<18x4133xf32>) -> tensor<18x20xf32> {
    %0 = graph.weight "5eed000000000001" : tensor<4133x20xf32>
    %1 = graph.weight "5eed000000000002" : tensor<20xf32>
    %2 = graph.matmul %x, %0, %1 : (tensor<18x4133xf32>, tensor<4133x20xf32>, tensor<20xf32>) -> tensor<18x20xf32>
    %3 = graph.relu %2 : (tensor<18x20xf32>) -> tensor<18x20xf32>
    func.return %3 : tensor<18x20xf32>
  }
}
