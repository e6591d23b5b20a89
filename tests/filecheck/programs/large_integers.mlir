// Integers that no f32 holds, in every place of functions of two and three operands; so are floats that are no numbers.

// RUN-LEVELS: seed=92; precision=fp32,fp16

func.func @main(%m: tensor<3x7xi1>, %x: tensor<3x7xi32>, %f: tensor<3x7xf32>) -> (tensor<3x7xi32>, tensor<3x7xi32>, tensor<3x7xi32>, tensor<3x7xi32>, tensor<3x7xi32>, tensor<3x7xi32>, tensor<3x7xi32>, tensor<3x7xi32>, tensor<3x7xf32>, tensor<3x7xf32>) {
  %most = graph.constant dense<2147483647> : tensor<i32>
  %odd = graph.constant dense<16777217> : tensor<1x1xi32>
  %low = graph.constant dense<-2147483647> : tensor<i32>
  %one = graph.constant dense<-1> : tensor<i32>
  %0 = graph.where %m, %one, %most : (tensor<3x7xi1>, tensor<i32>, tensor<i32>) -> tensor<3x7xi32>
  %1 = graph.where %m, %odd, %one : (tensor<3x7xi1>, tensor<1x1xi32>, tensor<i32>) -> tensor<3x7xi32>
  %2 = graph.where %m, %odd, %low : (tensor<3x7xi1>, tensor<1x1xi32>, tensor<i32>) -> tensor<3x7xi32>
  %3 = graph.where %m, %x, %odd : (tensor<3x7xi1>, tensor<3x7xi32>, tensor<1x1xi32>) -> tensor<3x7xi32>
  %4 = graph.where %m, %low, %x : (tensor<3x7xi1>, tensor<i32>, tensor<3x7xi32>) -> tensor<3x7xi32>
  %5 = graph.mul %x, %odd : (tensor<3x7xi32>, tensor<1x1xi32>) -> tensor<3x7xi32>
  %6 = graph.clip %5 {lo = -16777217.0, hi = 16777219.0} : (tensor<3x7xi32>) -> tensor<3x7xi32>
  %7 = graph.clip %5 {lo = 16777219.0} : (tensor<3x7xi32>) -> tensor<3x7xi32>
  %two = graph.constant dense<2.0> : tensor<f32>
  %nan = graph.constant dense<0x7FC00000> : tensor<f32>
  %8 = graph.where %m, %two, %nan : (tensor<3x7xi1>, tensor<f32>, tensor<f32>) -> tensor<3x7xf32>
  %9 = graph.where %m, %nan, %f : (tensor<3x7xi1>, tensor<f32>, tensor<3x7xf32>) -> tensor<3x7xf32>
  func.return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 : tensor<3x7xi32>, tensor<3x7xi32>, tensor<3x7xi32>, tensor<3x7xi32>, tensor<3x7xi32>, tensor<3x7xi32>, tensor<3x7xi32>, tensor<3x7xi32>, tensor<3x7xf32>, tensor<3x7xf32>
}
