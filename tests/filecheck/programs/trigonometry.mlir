// Tangent, hyperbolic functions and all inverses: over their domains, and of special values.

// RUN-LEVELS: seed=61; precision=fp32,fp16; %x=uniform(-1,1); %y=uniform(1,9); %z=special

func.func @main(%x: tensor<3x37xf32>, %y: tensor<50xf32>, %z: tensor<32xf32>) -> (tensor<3x37xf32>, tensor<3x37xf32>, tensor<3x37xf32>, tensor<3x37xf32>, tensor<3x37xf32>, tensor<3x37xf32>, tensor<3x37xf32>, tensor<3x37xf32>, tensor<50xf32>, tensor<32xf32>, tensor<32xf32>) {
  %0 = graph.tan %x : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %1 = graph.asin %x : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %2 = graph.acos %x : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %3 = graph.atan %x : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %4 = graph.sinh %x : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %5 = graph.cosh %x : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %6 = graph.asinh %x : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %7 = graph.atanh %x : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %8 = graph.acosh %y : (tensor<50xf32>) -> tensor<50xf32>
  %9 = graph.atan %z : (tensor<32xf32>) -> tensor<32xf32>
  %10 = graph.asinh %z : (tensor<32xf32>) -> tensor<32xf32>
  func.return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10 : tensor<3x37xf32>, tensor<3x37xf32>, tensor<3x37xf32>, tensor<3x37xf32>, tensor<3x37xf32>, tensor<3x37xf32>, tensor<3x37xf32>, tensor<3x37xf32>, tensor<50xf32>, tensor<32xf32>, tensor<32xf32>
}
