// The first value is used after many: its place must not be given away.

// RUN-LEVELS: seed=77; precision=fp32,fp16; tolerance=4

builtin.module {
  func.func @main(%x: tensor<20x20xf32>) -> tensor<20x20xf32> {
    %0 = graph.tanh %x : (tensor<20x20xf32>) -> tensor<20x20xf32>
    %1 = graph.transpose %0 {perm = [1, 0]} : (tensor<20x20xf32>) -> tensor<20x20xf32>
    %2 = graph.softmax %1 {axes = [0]} : (tensor<20x20xf32>) -> tensor<20x20xf32>
    %3 = graph.transpose %2 {perm = [1, 0]} : (tensor<20x20xf32>) -> tensor<20x20xf32>
    %4 = graph.softmax %3 {axes = [0]} : (tensor<20x20xf32>) -> tensor<20x20xf32>
    %5 = graph.transpose %4 {perm = [1, 0]} : (tensor<20x20xf32>) -> tensor<20x20xf32>
    %6 = graph.softmax %5 {axes = [0]} : (tensor<20x20xf32>) -> tensor<20x20xf32>
    %7 = graph.transpose %6 {perm = [1, 0]} : (tensor<20x20xf32>) -> tensor<20x20xf32>
    %8 = graph.softmax %7 {axes = [0]} : (tensor<20x20xf32>) -> tensor<20x20xf32>
    %9 = graph.transpose %8 {perm = [1, 0]} : (tensor<20x20xf32>) -> tensor<20x20xf32>
    %10 = graph.softmax %9 {axes = [0]} : (tensor<20x20xf32>) -> tensor<20x20xf32>
    %11 = graph.transpose %10 {perm = [1, 0]} : (tensor<20x20xf32>) -> tensor<20x20xf32>
    %12 = graph.softmax %11 {axes = [0]} : (tensor<20x20xf32>) -> tensor<20x20xf32>
    %13 = graph.add %12, %0 : (tensor<20x20xf32>, tensor<20x20xf32>) -> tensor<20x20xf32>
    func.return %13 : tensor<20x20xf32>
  }
}
