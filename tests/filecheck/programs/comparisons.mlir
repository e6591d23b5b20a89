// Comparisons, logic on their results, and choosing by them.

// RUN-LEVELS: seed=4; %x=special; %y=special

builtin.module {
  func.func @main(%x: tensor<9x17xf32>, %y: tensor<9x17xf32>, %m: tensor<17xi1>) -> (tensor<9x17xi1>, tensor<9x17xi1>, tensor<9x17xi1>, tensor<9x17xi1>, tensor<9x17xi1>, tensor<9x17xi1>, tensor<9x17xi1>, tensor<9x17xf32>) {
    %0 = graph.eq %x, %y : (tensor<9x17xf32>, tensor<9x17xf32>) -> tensor<9x17xi1>
    %1 = graph.ne %x, %y : (tensor<9x17xf32>, tensor<9x17xf32>) -> tensor<9x17xi1>
    %2 = graph.lt %x, %y : (tensor<9x17xf32>, tensor<9x17xf32>) -> tensor<9x17xi1>
    %3 = graph.le %x, %y : (tensor<9x17xf32>, tensor<9x17xf32>) -> tensor<9x17xi1>
    %4 = graph.gt %x, %y : (tensor<9x17xf32>, tensor<9x17xf32>) -> tensor<9x17xi1>
    %5 = graph.ge %x, %y : (tensor<9x17xf32>, tensor<9x17xf32>) -> tensor<9x17xi1>
    %6 = graph.and %0, %m : (tensor<9x17xi1>, tensor<17xi1>) -> tensor<9x17xi1>
    %7 = graph.or %2, %4 : (tensor<9x17xi1>, tensor<9x17xi1>) -> tensor<9x17xi1>
    %8 = graph.xor %6, %7 : (tensor<9x17xi1>, tensor<9x17xi1>) -> tensor<9x17xi1>
    %9 = graph.not %8 : (tensor<9x17xi1>) -> tensor<9x17xi1>
    %10 = graph.where %9, %x, %y : (tensor<9x17xi1>, tensor<9x17xf32>, tensor<9x17xf32>) -> tensor<9x17xf32>
    func.return %0, %1, %2, %3, %4, %5, %9, %10 : tensor<9x17xi1>, tensor<9x17xi1>, tensor<9x17xi1>, tensor<9x17xi1>, tensor<9x17xi1>, tensor<9x17xi1>, tensor<9x17xi1>, tensor<9x17xf32>
  }
}
