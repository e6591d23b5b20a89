// Functions of one operand in f32.

// RUN-LEVELS: seed=5; tolerance=2

builtin.module {
  func.func @main(%x: tensor<4x33xf32>) -> (tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>) {
    %0 = graph.neg %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %1 = graph.abs %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %2 = graph.relu %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %3 = graph.exp %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %4 = graph.sin %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %5 = graph.cos %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %6 = graph.tanh %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %7 = graph.erf %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %8 = graph.sigmoid %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %9 = graph.silu %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %10 = graph.gelu %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %11 = graph.hardswish %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %12 = graph.softplus %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %13 = graph.floor %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %14 = graph.ceil %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %15 = graph.round %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %16 = graph.sign %x : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %17 = graph.hardsigmoid %x {alpha = 0.2, beta = 0.5} : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %18 = graph.elu %x {alpha = 1.0} : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %19 = graph.leakyrelu %x {alpha = 0.01} : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %20 = graph.clip %x {lo = -0.5, hi = 0.75} : (tensor<4x33xf32>) -> tensor<4x33xf32>
    %21 = graph.affine %x {scale = 2.0, shift = -1.0} : (tensor<4x33xf32>) -> tensor<4x33xf32>
    func.return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21 : tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>
  }
}
