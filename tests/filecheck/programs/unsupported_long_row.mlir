// A row that does not fit on chip at once.

// RUN-LEVELS: fails=a row of every value must fit UB together; targets=tiny

builtin.module {
  func.func @main(%x: tensor<2x20000xf32>) -> tensor<2xf32> {
    %0 = graph.reduce_sum %x {axes = [1]} : (tensor<2x20000xf32>) -> tensor<2xf32>
    func.return %0 : tensor<2xf32>
  }
}
