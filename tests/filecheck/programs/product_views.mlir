// Products of views: heads read and written as they lie, a slice with an offset, a left operand that stands [k, m], a
// broadcast matrix, and a batch of two whose views have no common stride.

// RUN-LEVELS: seed=131; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<1x37x96xf32>, %y: tensor<2x19x3x16xf32>, %z: tensor<16x37xf32>) -> (tensor<1x37x2x37xf32>, tensor<2x3x19x19xf32>, tensor<37x19xf32>, tensor<3x37x19xf32>) {
    %0 = graph.reshape %x {shape = [1, 37, 3, 2, 16]} : (tensor<1x37x96xf32>) -> tensor<1x37x3x2x16xf32>
    %1 = graph.transpose %0 {perm = [2, 0, 3, 1, 4]} : (tensor<1x37x3x2x16xf32>) -> tensor<3x1x2x37x16xf32>
    %2 = graph.slice %1 {starts = [1, 0, 0, 0, 0], sizes = [1, 1, 2, 37, 16], steps = [1, 1, 1, 1, 1]} : (tensor<3x1x2x37x16xf32>) -> tensor<1x1x2x37x16xf32>
    %3 = graph.reshape %2 {shape = [1, 2, 37, 16]} : (tensor<1x1x2x37x16xf32>) -> tensor<1x2x37x16xf32>
    %4 = graph.slice %1 {starts = [2, 0, 0, 0, 0], sizes = [1, 1, 2, 37, 16], steps = [1, 1, 1, 1, 1]} : (tensor<3x1x2x37x16xf32>) -> tensor<1x1x2x37x16xf32>
    %5 = graph.reshape %4 {shape = [1, 2, 37, 16]} : (tensor<1x1x2x37x16xf32>) -> tensor<1x2x37x16xf32>
    %6 = graph.matmul %3, %5 {trans_b = true} : (tensor<1x2x37x16xf32>, tensor<1x2x37x16xf32>) -> tensor<1x2x37x37xf32>
    %7 = graph.relu %6 : (tensor<1x2x37x37xf32>) -> tensor<1x2x37x37xf32>
    %8 = graph.transpose %7 {perm = [0, 2, 1, 3]} : (tensor<1x2x37x37xf32>) -> tensor<1x37x2x37xf32>
    %9 = graph.transpose %y {perm = [0, 2, 1, 3]} : (tensor<2x19x3x16xf32>) -> tensor<2x3x19x16xf32>
    %10 = graph.matmul %9, %9 {trans_b = true} : (tensor<2x3x19x16xf32>, tensor<2x3x19x16xf32>) -> tensor<2x3x19x19xf32>
    %11 = graph.transpose %z {perm = [1, 0]} : (tensor<16x37xf32>) -> tensor<37x16xf32>
    %12 = graph.slice %y {starts = [1, 0, 2, 0], sizes = [1, 19, 1, 16], steps = [1, 1, 1, 1]} : (tensor<2x19x3x16xf32>) -> tensor<1x19x1x16xf32>
    %13 = graph.reshape %12 {shape = [19, 16]} : (tensor<1x19x1x16xf32>) -> tensor<19x16xf32>
    %14 = graph.matmul %11, %13 {trans_b = true} : (tensor<37x16xf32>, tensor<19x16xf32>) -> tensor<37x19xf32>
    %15 = graph.slice %y {starts = [0, 0, 0, 0], sizes = [1, 19, 3, 16], steps = [1, 1, 1, 1]} : (tensor<2x19x3x16xf32>) -> tensor<1x19x3x16xf32>
    %16 = graph.reshape %15 {shape = [19, 3, 16]} : (tensor<1x19x3x16xf32>) -> tensor<19x3x16xf32>
    %17 = graph.transpose %16 {perm = [1, 2, 0]} : (tensor<19x3x16xf32>) -> tensor<3x16x19xf32>
    %18 = graph.reshape %11 {shape = [1, 37, 16]} : (tensor<37x16xf32>) -> tensor<1x37x16xf32>
    %19 = graph.expand %18 {shape = [3, 37, 16]} : (tensor<1x37x16xf32>) -> tensor<3x37x16xf32>
    %20 = graph.matmul %19, %17 : (tensor<3x37x16xf32>, tensor<3x16x19xf32>) -> tensor<3x37x19xf32>
    func.return %8, %10, %14, %20 : tensor<1x37x2x37xf32>, tensor<2x3x19x19xf32>, tensor<37x19xf32>, tensor<3x37x19xf32>
  }
}
