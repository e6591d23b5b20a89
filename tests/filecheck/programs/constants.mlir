// Numbers as any operand: f32, bf16, bytes, and integers that f32 does not hold.

// RUN-LEVELS: seed=100

builtin.module {
  func.func @main(%x: tensor<5x7xf32>, %m: tensor<5x7xi1>, %h: tensor<6xbf16>, %u: tensor<5x7xui8>, %i: tensor<5x7xi32>) -> (tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<6xbf16>, tensor<5x7xui8>, tensor<5x7xui8>, tensor<5x7xi32>, tensor<5x7xi32>) {
    %0 = graph.constant dense<1.000000e+00> : tensor<f32>
    %1 = graph.constant dense<-3.000000e+00> : tensor<f32>
    %2 = graph.constant dense<2.500000e-01> : tensor<bf16>
    %3 = graph.constant dense<200> : tensor<ui8>
    %4 = graph.constant dense<16777217> : tensor<i32>
    %5 = graph.sub %0, %x : (tensor<f32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %6 = graph.where %m, %0, %1 : (tensor<5x7xi1>, tensor<f32>, tensor<f32>) -> tensor<5x7xf32>
    %7 = graph.where %m, %0, %x : (tensor<5x7xi1>, tensor<f32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %8 = graph.where %m, %x, %1 : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
    %9 = graph.div %2, %h : (tensor<bf16>, tensor<6xbf16>) -> tensor<6xbf16>
    %10 = graph.sub %3, %u : (tensor<ui8>, tensor<5x7xui8>) -> tensor<5x7xui8>
    %11 = graph.add %u, %3 : (tensor<5x7xui8>, tensor<ui8>) -> tensor<5x7xui8>
    %12 = graph.add %i, %4 : (tensor<5x7xi32>, tensor<i32>) -> tensor<5x7xi32>
    %13 = graph.sub %4, %i : (tensor<i32>, tensor<5x7xi32>) -> tensor<5x7xi32>
    func.return %5, %6, %7, %8, %9, %10, %11, %12, %13 : tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<6xbf16>, tensor<5x7xui8>, tensor<5x7xui8>, tensor<5x7xi32>, tensor<5x7xi32>
  }
}
