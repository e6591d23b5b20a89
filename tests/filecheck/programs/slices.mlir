// Slices from a start, with steps forward and backward.

// RUN-LEVELS: seed=65; precision=fp32,fp16

builtin.module {
  func.func @main(%x: tensor<20x31xf32>) -> (tensor<7x31xf32>, tensor<20x9xf32>, tensor<10x31xf32>, tensor<3x30xf32>) {
    %0 = graph.slice %x {starts = [3, 0], sizes = [7, 31], steps = [1, 1]} : (tensor<20x31xf32>) -> tensor<7x31xf32>
    %1 = graph.slice %x {starts = [0, 4], sizes = [20, 9], steps = [1, 3]} : (tensor<20x31xf32>) -> tensor<20x9xf32>
    %2 = graph.slice %x {starts = [19, 0], sizes = [10, 31], steps = [-2, 1]} : (tensor<20x31xf32>) -> tensor<10x31xf32>
    %3 = graph.slice %x {starts = [2, 30], sizes = [3, 30], steps = [5, -1]} : (tensor<20x31xf32>) -> tensor<3x30xf32>
    func.return %0, %1, %2, %3 : tensor<7x31xf32>, tensor<20x9xf32>, tensor<10x31xf32>, tensor<3x30xf32>
  }
}
