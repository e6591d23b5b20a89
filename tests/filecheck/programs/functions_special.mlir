// Functions of one operand at NaN, infinities, zeros and subnormals, in f16.

// RUN-LEVELS: seed=6; %x=special

builtin.module {
  func.func @main(%x: tensor<96xf16>) -> (tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xi1>, tensor<96xi1>) {
    %0 = graph.neg %x : (tensor<96xf16>) -> tensor<96xf16>
    %1 = graph.abs %x : (tensor<96xf16>) -> tensor<96xf16>
    %2 = graph.relu %x : (tensor<96xf16>) -> tensor<96xf16>
    %3 = graph.sigmoid %x : (tensor<96xf16>) -> tensor<96xf16>
    %4 = graph.tanh %x : (tensor<96xf16>) -> tensor<96xf16>
    %5 = graph.erf %x : (tensor<96xf16>) -> tensor<96xf16>
    %6 = graph.exp %x : (tensor<96xf16>) -> tensor<96xf16>
    %7 = graph.sqrt %x : (tensor<96xf16>) -> tensor<96xf16>
    %8 = graph.log %x : (tensor<96xf16>) -> tensor<96xf16>
    %9 = graph.reciprocal %x : (tensor<96xf16>) -> tensor<96xf16>
    %10 = graph.floor %x : (tensor<96xf16>) -> tensor<96xf16>
    %11 = graph.ceil %x : (tensor<96xf16>) -> tensor<96xf16>
    %12 = graph.round %x : (tensor<96xf16>) -> tensor<96xf16>
    %13 = graph.sign %x : (tensor<96xf16>) -> tensor<96xf16>
    %14 = graph.isnan %x : (tensor<96xf16>) -> tensor<96xi1>
    %15 = graph.isinf %x : (tensor<96xf16>) -> tensor<96xi1>
    func.return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15 : tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xf16>, tensor<96xi1>, tensor<96xi1>
  }
}
