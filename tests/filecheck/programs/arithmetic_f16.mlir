// The same on f16: each edge is rounded once. And bf16.

// RUN-LEVELS: seed=2; %x=special; %y=special; %a=special; %b=special

builtin.module {
  func.func @main(%x: tensor<3x40xf16>, %y: tensor<3x40xf16>, %a: tensor<77xbf16>, %b: tensor<77xbf16>) -> (tensor<3x40xf16>, tensor<3x40xf16>, tensor<3x40xf16>, tensor<3x40xf16>, tensor<3x40xf16>, tensor<3x40xf16>, tensor<77xbf16>, tensor<77xbf16>, tensor<77xbf16>, tensor<77xbf16>, tensor<77xbf16>, tensor<77xbf16>) {
    %0 = graph.add %x, %y : (tensor<3x40xf16>, tensor<3x40xf16>) -> tensor<3x40xf16>
    %1 = graph.sub %x, %y : (tensor<3x40xf16>, tensor<3x40xf16>) -> tensor<3x40xf16>
    %2 = graph.mul %x, %y : (tensor<3x40xf16>, tensor<3x40xf16>) -> tensor<3x40xf16>
    %3 = graph.div %x, %y : (tensor<3x40xf16>, tensor<3x40xf16>) -> tensor<3x40xf16>
    %4 = graph.max %x, %y : (tensor<3x40xf16>, tensor<3x40xf16>) -> tensor<3x40xf16>
    %5 = graph.min %x, %y : (tensor<3x40xf16>, tensor<3x40xf16>) -> tensor<3x40xf16>
    %6 = graph.add %a, %b : (tensor<77xbf16>, tensor<77xbf16>) -> tensor<77xbf16>
    %7 = graph.sub %a, %b : (tensor<77xbf16>, tensor<77xbf16>) -> tensor<77xbf16>
    %8 = graph.mul %a, %b : (tensor<77xbf16>, tensor<77xbf16>) -> tensor<77xbf16>
    %9 = graph.div %a, %b : (tensor<77xbf16>, tensor<77xbf16>) -> tensor<77xbf16>
    %10 = graph.max %a, %b : (tensor<77xbf16>, tensor<77xbf16>) -> tensor<77xbf16>
    %11 = graph.min %a, %b : (tensor<77xbf16>, tensor<77xbf16>) -> tensor<77xbf16>
    func.return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11 : tensor<3x40xf16>, tensor<3x40xf16>, tensor<3x40xf16>, tensor<3x40xf16>, tensor<3x40xf16>, tensor<3x40xf16>, tensor<77xbf16>, tensor<77xbf16>, tensor<77xbf16>, tensor<77xbf16>, tensor<77xbf16>, tensor<77xbf16>
  }
}
