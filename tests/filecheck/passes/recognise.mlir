// RUN: stepwell-opt %s -p recognise | filecheck %s
// RUN: stepwell-opt %s -p recognise --notes 2>&1 >/dev/null | filecheck %s --check-prefix NOTE
// RUN: stepwell-opt %s -p 'recognise{approximate=true}' | filecheck %s --check-prefix TANH

builtin.module {
  // CHECK-LABEL: func.func @hardswish
  // CHECK-NEXT:    graph.hardswish %x : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK-NEXT:    func.return
  func.func @hardswish(%x: tensor<8xf32>) -> tensor<8xf32> {
    %three = graph.constant dense<3.0> : tensor<1xf32>
    %six = graph.constant dense<6.0> : tensor<1xf32>
    %0 = graph.add %x, %three : (tensor<8xf32>, tensor<1xf32>) -> tensor<8xf32>
    %1 = graph.clip %0 {lo = 0.0, hi = 6.0} : (tensor<8xf32>) -> tensor<8xf32>
    %2 = graph.mul %x, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %3 = graph.div %2, %six : (tensor<8xf32>, tensor<1xf32>) -> tensor<8xf32>
    func.return %3 : tensor<8xf32>
  }

  // CHECK-LABEL: func.func @hardswish_of_hardsigmoid
  // CHECK-NEXT:    graph.hardswish %x
  func.func @hardswish_of_hardsigmoid(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = graph.hardsigmoid %x {alpha = 0.16666667, beta = 0.5} : (tensor<8xf32>) -> tensor<8xf32>
    %1 = graph.mul %x, %0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    func.return %1 : tensor<8xf32>
  }

  // NOTE: hardswish: shift, bounds and factor are 3, 0, 6 and 1/6 (found (2.0, 0.0, 6.0, {{.*}}))
  func.func @almost_hardswish(%x: tensor<8xf32>) -> tensor<8xf32> {
    %two = graph.constant dense<2.0> : tensor<f32>
    %six = graph.constant dense<6.0> : tensor<f32>
    %0 = graph.add %x, %two : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %1 = graph.clip %0 {lo = 0.0, hi = 6.0} : (tensor<8xf32>) -> tensor<8xf32>
    %2 = graph.mul %x, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %3 = graph.div %2, %six : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    func.return %3 : tensor<8xf32>
  }

  // CHECK-LABEL: func.func @silu
  // CHECK-NEXT:    graph.silu %x
  func.func @silu(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = graph.sigmoid %x : (tensor<8xf32>) -> tensor<8xf32>
    %1 = graph.mul %x, %0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    func.return %1 : tensor<8xf32>
  }

  // NOTE: not silu: the sigmoid's operand is x itself (found 1.70
  func.func @almost_silu(%x: tensor<8xf32>) -> tensor<8xf32> {
    %s = graph.constant dense<1.702> : tensor<f32>
    %0 = graph.mul %x, %s : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %1 = graph.sigmoid %0 : (tensor<8xf32>) -> tensor<8xf32>
    %2 = graph.mul %x, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    func.return %2 : tensor<8xf32>
  }

  // CHECK-LABEL: func.func @gelu
  // CHECK-NEXT:    graph.gelu %x
  // CHECK-NEXT:    func.return
  func.func @gelu(%x: tensor<8xf32>) -> tensor<8xf32> {
    %root = graph.constant dense<1.4142135> : tensor<f32>
    %one = graph.constant dense<1.0> : tensor<f32>
    %half = graph.constant dense<0.5> : tensor<f32>
    %0 = graph.div %x, %root : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %1 = graph.erf %0 : (tensor<8xf32>) -> tensor<8xf32>
    %2 = graph.add %1, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %3 = graph.mul %half, %2 : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
    %4 = graph.mul %x, %3 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    func.return %4 : tensor<8xf32>
  }

  // The approximation has other values, so it is taken only if that is asked for.
  // CHECK-LABEL: func.func @tanh_gelu
  // CHECK:         graph.tanh
  // NOTE: not gelu: the exact form, with erf; recognise{approximate=true} takes the other (found the approximation with tanh)
  // TANH-LABEL: func.func @tanh_gelu
  // TANH-NEXT:    graph.gelu %x
  // TANH-NEXT:    func.return
  func.func @tanh_gelu(%x: tensor<8xf32>) -> tensor<8xf32> {
    %three = graph.constant dense<3.0> : tensor<f32>
    %small = graph.constant dense<0.044715> : tensor<f32>
    %root = graph.constant dense<0.7978845608> : tensor<f32>
    %one = graph.constant dense<1.0> : tensor<f32>
    %half = graph.constant dense<0.5> : tensor<f32>
    %0 = graph.pow %x, %three : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %1 = graph.mul %0, %small : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = graph.add %x, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %3 = graph.mul %2, %root : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %4 = graph.tanh %3 : (tensor<8xf32>) -> tensor<8xf32>
    %5 = graph.add %4, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %6 = graph.mul %x, %5 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %7 = graph.mul %6, %half : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    func.return %7 : tensor<8xf32>
  }

  // CHECK-LABEL: func.func @layer_norm
  // CHECK:         graph.layer_norm %x, %gamma, %beta {axis = 1, epsilon = {{.*}}}
  // CHECK-NEXT:    func.return
  func.func @layer_norm(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
    %gamma = graph.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %beta = graph.constant dense<[4.0, 3.0, 2.0, 1.0]> : tensor<4xf32>
    %two = graph.constant dense<2.0> : tensor<f32>
    %eps = graph.constant dense<1.0e-5> : tensor<f32>
    %0 = graph.reduce_mean %x {axes = [1], keepdims = true} : (tensor<2x4xf32>) -> tensor<2x1xf32>
    %1 = graph.sub %x, %0 : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
    %2 = graph.pow %1, %two : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %3 = graph.reduce_mean %2 {axes = [1], keepdims = true} : (tensor<2x4xf32>) -> tensor<2x1xf32>
    %4 = graph.add %3, %eps : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
    %5 = graph.sqrt %4 : (tensor<2x1xf32>) -> tensor<2x1xf32>
    %6 = graph.div %1, %5 : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
    %7 = graph.mul %6, %gamma : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %8 = graph.add %7, %beta : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    func.return %8 : tensor<2x4xf32>
  }

  // Normalised before a transpose, squared behind it.
  // CHECK-LABEL: func.func @layer_norm_across_transpose
  // CHECK:         %[[T:.*]] = graph.transpose %x {perm = [1, 0]}
  // CHECK:         graph.layer_norm %[[T]], %{{.*}} {axis = 1
  // CHECK-NEXT:    func.return
  func.func @layer_norm_across_transpose(%x: tensor<4x2xf32>) -> tensor<2x4xf32> {
    %eps = graph.constant dense<1.0e-5> : tensor<f32>
    %t = graph.transpose %x {perm = [1, 0]} : (tensor<4x2xf32>) -> tensor<2x4xf32>
    %0 = graph.reduce_mean %x {axes = [0], keepdims = true} : (tensor<4x2xf32>) -> tensor<1x2xf32>
    %1 = graph.sub %x, %0 : (tensor<4x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
    %2 = graph.transpose %1 {perm = [1, 0]} : (tensor<4x2xf32>) -> tensor<2x4xf32>
    %3 = graph.mul %2, %2 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %4 = graph.reduce_mean %3 {axes = [1], keepdims = true} : (tensor<2x4xf32>) -> tensor<2x1xf32>
    %5 = graph.add %4, %eps : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
    %6 = graph.sqrt %5 : (tensor<2x1xf32>) -> tensor<2x1xf32>
    %7 = graph.div %2, %6 : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
    %8 = graph.relu %t : (tensor<2x4xf32>) -> tensor<2x4xf32>
    func.return %7 : tensor<2x4xf32>
  }

  // NOTE: not layer_norm: both means run over the last axes (found axes [0] and [0] of 2)
  func.func @almost_layer_norm(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
    %eps = graph.constant dense<1.0e-5> : tensor<f32>
    %0 = graph.reduce_mean %x {axes = [0], keepdims = true} : (tensor<4x2xf32>) -> tensor<1x2xf32>
    %1 = graph.sub %x, %0 : (tensor<4x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
    %2 = graph.mul %1, %1 : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %3 = graph.reduce_mean %2 {axes = [0], keepdims = true} : (tensor<4x2xf32>) -> tensor<1x2xf32>
    %4 = graph.add %3, %eps : (tensor<1x2xf32>, tensor<f32>) -> tensor<1x2xf32>
    %5 = graph.sqrt %4 : (tensor<1x2xf32>) -> tensor<1x2xf32>
    %6 = graph.div %1, %5 : (tensor<4x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
    func.return %6 : tensor<4x2xf32>
  }

  // Numbers that multiply and add are one affine op.
  // CHECK-LABEL: func.func @affine
  // CHECK-NEXT:    graph.affine %x {scale = 6.0, shift = 5.0}
  // CHECK-NEXT:    func.return
  func.func @affine(%x: tensor<8xf32>) -> tensor<8xf32> {
    %two = graph.constant dense<2.0> : tensor<f32>
    %three = graph.constant dense<3.0> : tensor<1xf32>
    %one = graph.constant dense<1.0> : tensor<f32>
    %0 = graph.mul %x, %two : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %1 = graph.add %0, %two : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = graph.mul %three, %1 : (tensor<1xf32>, tensor<8xf32>) -> tensor<8xf32>
    %3 = graph.sub %2, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    func.return %3 : tensor<8xf32>
  }

  // CHECK-LABEL: func.func @batch_norm_into_conv
  // CHECK-NEXT:    %[[W:.*]] = graph.constant dense<{{\[\[\[\[}}2.000000e+00]]], {{\[\[\[}}1.000000e+01]]]]> : tensor<2x1x1x1xf32>
  // CHECK-NEXT:    %[[B:.*]] = graph.constant dense<[-1.000000e+00, -1.400000e+01]> : tensor<2xf32>
  // CHECK-NEXT:    graph.conv %x, %[[W]], %[[B]]
  // CHECK-NEXT:    func.return
  func.func @batch_norm_into_conv(%x: tensor<1x1x3x3xf32>) -> tensor<1x2x3x3xf32> {
    %w = graph.constant dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>
    %scale = graph.constant dense<[4.0, 5.0]> : tensor<2xf32>
    %bias = graph.constant dense<[1.0, 1.0]> : tensor<2xf32>
    %mean = graph.constant dense<[1.0, 3.0]> : tensor<2xf32>
    %variance = graph.constant dense<[3.0, 0.0]> : tensor<2xf32>
    %0 = graph.conv %x, %w {kernel = [1, 1], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x1x3x3xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x3x3xf32>
    %1 = graph.batch_norm %0, %scale, %bias, %mean, %variance {epsilon = 1.0} : (tensor<1x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x3x3xf32>
    func.return %1 : tensor<1x2x3x3xf32>
  }

  // A shift does not pass padding, a scale does; without padding both do.
  // CHECK-LABEL: func.func @affine_before_conv
  // CHECK:         graph.affine
  // CHECK:         graph.conv
  // CHECK-NOT:     graph.affine
  // CHECK:         graph.conv
  // CHECK-NEXT:    func.return
  func.func @affine_before_conv(%x: tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32> {
    %w = graph.constant dense<1.0> : tensor<1x1x3x3xf32>
    %v = graph.constant dense<2.0> : tensor<1x1x1x1xf32>
    %0 = graph.affine %x {scale = 2.0, shift = 1.0} : (tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32>
    %1 = graph.conv %0, %w {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32>
    %2 = graph.relu %1 : (tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32>
    %3 = graph.affine %2 {scale = 2.0, shift = 1.0} : (tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32>
    %4 = graph.conv %3, %v {kernel = [1, 1], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x1x3x3xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x3x3xf32>
    func.return %4 : tensor<1x1x3x3xf32>
  }

  // CHECK-LABEL: func.func @matmul_bias
  // CHECK:         graph.matmul %a, %b, %{{.*}} : (tensor<2x3xf32>, tensor<3x2xf32>, tensor<2xf32>)
  // CHECK-NEXT:    func.return
  func.func @matmul_bias(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) -> tensor<2x2xf32> {
    %bias = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %0 = graph.matmul %a, %b : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %1 = graph.add %bias, %0 : (tensor<2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    func.return %1 : tensor<2x2xf32>
  }
}
