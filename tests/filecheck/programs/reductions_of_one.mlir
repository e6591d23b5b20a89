// Reductions of one element, over values that are broadcast along other axes: the rows do not merge.

// RUN-LEVELS: seed=113; precision=fp32,fp16; tolerance=4; %z=special; %r=uniform(0.5, 1)

builtin.module {
  func.func @main(%x: tensor<2x3x1xf32>, %y: tensor<2x1x1xf32>, %a: tensor<4x1x3x1x1xf32>, %b: tensor<1x3x1x5x1xf32>, %c: tensor<1x17x1xf32>, %z: tensor<14x1x1x1xf32>, %r: tensor<1x3x1x1xf32>, %v: tensor<5xf32>, %p: tensor<4x1x5xf32>, %l: tensor<30x1x1xf32>, %s: tensor<1x900x1xf32>) -> (tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<4x3x3x5x1xf32>, tensor<5x17x1xf32>, tensor<14x3x1x1xf32>, tensor<14x3x1x1xf32>, tensor<4x1x5xf32>, tensor<30x900x1xf32>) {
    %0 = graph.add %x, %y : (tensor<2x3x1xf32>, tensor<2x1x1xf32>) -> tensor<2x3x1xf32>
    %1 = graph.reduce_sum %0 {axes = [2], keepdims = true} : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
    %g = graph.weight "5eed000000000001" : tensor<1xf32>
    %h = graph.weight "5eed000000000002" : tensor<1xf32>
    %2 = graph.sub %x, %y : (tensor<2x3x1xf32>, tensor<2x1x1xf32>) -> tensor<2x3x1xf32>
    %3 = graph.layer_norm %2, %g, %h {axis = 2, epsilon = 1.0e-05} : (tensor<2x3x1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x3x1xf32>
    %4 = graph.add %a, %b : (tensor<4x1x3x1x1xf32>, tensor<1x3x1x5x1xf32>) -> tensor<4x3x3x5x1xf32>
    %5 = graph.softmax %4 {axes = [4]} : (tensor<4x3x3x5x1xf32>) -> tensor<4x3x3x5x1xf32>
    %6 = graph.expand %c {shape = [5, 17, 1]} : (tensor<1x17x1xf32>) -> tensor<5x17x1xf32>
    %7 = graph.softmax %6 {axes = [2]} : (tensor<5x17x1xf32>) -> tensor<5x17x1xf32>
    %8 = graph.mul %z, %r : (tensor<14x1x1x1xf32>, tensor<1x3x1x1xf32>) -> tensor<14x3x1x1xf32>
    %9 = graph.reduce_max %8 {axes = [2, 3], keepdims = true} : (tensor<14x3x1x1xf32>) -> tensor<14x3x1x1xf32>
    %10 = graph.reduce_sum %8 {axes = [2, 3], keepdims = true} : (tensor<14x3x1x1xf32>) -> tensor<14x3x1x1xf32>
    %11 = graph.reduce_sum %p {axes = [1], keepdims = true} : (tensor<4x1x5xf32>) -> tensor<4x1x5xf32>
    %12 = graph.add %11, %v : (tensor<4x1x5xf32>, tensor<5xf32>) -> tensor<4x1x5xf32>
    %13 = graph.add %l, %s : (tensor<30x1x1xf32>, tensor<1x900x1xf32>) -> tensor<30x900x1xf32>
    %14 = graph.softmax %13 {axes = [2]} : (tensor<30x900x1xf32>) -> tensor<30x900x1xf32>
    func.return %1, %3, %5, %7, %9, %10, %12, %14 : tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<4x3x3x5x1xf32>, tensor<5x17x1xf32>, tensor<14x3x1x1xf32>, tensor<14x3x1x1xf32>, tensor<4x1x5xf32>, tensor<30x900x1xf32>
  }
}
