// Every op of the graph dialect reads and prints as its example does (tests/graph/operators_test.py keeps this complete).

// RUN: stepwell-opt %s | filecheck %s
// RUN: stepwell-opt %s | stepwell-opt | filecheck %s

builtin.module {
  func.func @cast(%0: tensor<4xf32>) {
    %1 = graph.cast %0 : (tensor<4xf32>) -> tensor<4xf16>
    func.return
  }
  // CHECK: graph.cast %0 : (tensor<4xf32>) -> tensor<4xf16>

  func.func @copy(%0: tensor<4xf32>) {
    %1 = graph.copy %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.copy %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @where(%0: tensor<4xi1>, %1: tensor<4xf32>, %2: tensor<f32>) {
    %3 = graph.where %0, %1, %2 : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.where %0, %1, %2 : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>

  func.func @clip(%0: tensor<4xf32>) {
    %1 = graph.clip %0 {lo = 0.0, hi = 6.0} : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.clip %0 {lo = 0.0, hi = 6.0} : (tensor<4xf32>) -> tensor<4xf32>

  func.func @affine(%0: tensor<4xf32>) {
    %1 = graph.affine %0 {scale = 2.0, shift = -1.0} : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.affine %0 {scale = 2.0, shift = -1.0} : (tensor<4xf32>) -> tensor<4xf32>

  func.func @add(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

  func.func @sub(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.sub %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.sub %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

  func.func @mul(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.mul %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.mul %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

  func.func @div(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.div %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.div %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

  func.func @mod(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.mod %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.mod %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

  func.func @fmod(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.fmod %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.fmod %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

  func.func @max(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.max %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.max %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

  func.func @min(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.min %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.min %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

  func.func @pow(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.pow %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.pow %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

  func.func @eq(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.eq %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    func.return
  }
  // CHECK: graph.eq %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>

  func.func @ne(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.ne %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    func.return
  }
  // CHECK: graph.ne %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>

  func.func @lt(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.lt %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    func.return
  }
  // CHECK: graph.lt %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>

  func.func @le(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.le %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    func.return
  }
  // CHECK: graph.le %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>

  func.func @gt(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.gt %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    func.return
  }
  // CHECK: graph.gt %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>

  func.func @ge(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.ge %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    func.return
  }
  // CHECK: graph.ge %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>

  func.func @and(%0: tensor<4xi1>, %1: tensor<4xi1>) {
    %2 = graph.and %0, %1 : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    func.return
  }
  // CHECK: graph.and %0, %1 : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>

  func.func @or(%0: tensor<4xi1>, %1: tensor<4xi1>) {
    %2 = graph.or %0, %1 : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    func.return
  }
  // CHECK: graph.or %0, %1 : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>

  func.func @xor(%0: tensor<4xi1>, %1: tensor<4xi1>) {
    %2 = graph.xor %0, %1 : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    func.return
  }
  // CHECK: graph.xor %0, %1 : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>

  func.func @not(%0: tensor<4xi1>) {
    %1 = graph.not %0 : (tensor<4xi1>) -> tensor<4xi1>
    func.return
  }
  // CHECK: graph.not %0 : (tensor<4xi1>) -> tensor<4xi1>

  func.func @neg(%0: tensor<4xf32>) {
    %1 = graph.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.neg %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @abs(%0: tensor<4xf32>) {
    %1 = graph.abs %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.abs %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @relu(%0: tensor<4xf32>) {
    %1 = graph.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.relu %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @sqrt(%0: tensor<4xf32>) {
    %1 = graph.sqrt %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.sqrt %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @rsqrt(%0: tensor<4xf32>) {
    %1 = graph.rsqrt %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.rsqrt %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @reciprocal(%0: tensor<4xf32>) {
    %1 = graph.reciprocal %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.reciprocal %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @exp(%0: tensor<4xf32>) {
    %1 = graph.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.exp %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @log(%0: tensor<4xf32>) {
    %1 = graph.log %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.log %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @sin(%0: tensor<4xf32>) {
    %1 = graph.sin %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.sin %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @cos(%0: tensor<4xf32>) {
    %1 = graph.cos %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.cos %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @tanh(%0: tensor<4xf32>) {
    %1 = graph.tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.tanh %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @erf(%0: tensor<4xf32>) {
    %1 = graph.erf %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.erf %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @sigmoid(%0: tensor<4xf32>) {
    %1 = graph.sigmoid %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.sigmoid %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @silu(%0: tensor<4xf32>) {
    %1 = graph.silu %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.silu %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @gelu(%0: tensor<4xf32>) {
    %1 = graph.gelu %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.gelu %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @hardswish(%0: tensor<4xf32>) {
    %1 = graph.hardswish %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.hardswish %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @softplus(%0: tensor<4xf32>) {
    %1 = graph.softplus %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.softplus %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @floor(%0: tensor<4xf32>) {
    %1 = graph.floor %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.floor %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @ceil(%0: tensor<4xf32>) {
    %1 = graph.ceil %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.ceil %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @round(%0: tensor<4xf32>) {
    %1 = graph.round %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.round %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @sign(%0: tensor<4xf32>) {
    %1 = graph.sign %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.sign %0 : (tensor<4xf32>) -> tensor<4xf32>

  func.func @isnan(%0: tensor<4xf32>) {
    %1 = graph.isnan %0 : (tensor<4xf32>) -> tensor<4xi1>
    func.return
  }
  // CHECK: graph.isnan %0 : (tensor<4xf32>) -> tensor<4xi1>

  func.func @isinf(%0: tensor<4xf32>) {
    %1 = graph.isinf %0 : (tensor<4xf32>) -> tensor<4xi1>
    func.return
  }
  // CHECK: graph.isinf %0 : (tensor<4xf32>) -> tensor<4xi1>

  func.func @hardsigmoid(%0: tensor<4xf32>) {
    %1 = graph.hardsigmoid %0 {alpha = 0.2, beta = 0.5} : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.hardsigmoid %0 {alpha = 0.2, beta = 0.5} : (tensor<4xf32>) -> tensor<4xf32>

  func.func @elu(%0: tensor<4xf32>) {
    %1 = graph.elu %0 {alpha = 1.0} : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.elu %0 {alpha = 1.0} : (tensor<4xf32>) -> tensor<4xf32>

  func.func @leakyrelu(%0: tensor<4xf32>) {
    %1 = graph.leakyrelu %0 {alpha = 0.01} : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.leakyrelu %0 {alpha = 0.01} : (tensor<4xf32>) -> tensor<4xf32>

  func.func @matmul(%0: tensor<2x3xf32>, %1: tensor<3x4xf32>) {
    %2 = graph.matmul %0, %1 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    func.return
  }
  // CHECK: graph.matmul %0, %1 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>

  func.func @conv2d(%0: tensor<1x8x8x3xf32>, %1: tensor<36x5xf32>) {
    %2 = graph.conv2d %0, %1 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], channels = 3} : (tensor<1x8x8x3xf32>, tensor<36x5xf32>) -> tensor<1x8x8x5xf32>
    func.return
  }
  // CHECK: graph.conv2d %0, %1 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], channels = 3} : (tensor<1x8x8x3xf32>, tensor<36x5xf32>) -> tensor<1x8x8x5xf32>

  func.func @depthwise2d(%0: tensor<1x8x8x20xf32>, %1: tensor<2x9x16xf32>) {
    %2 = graph.depthwise2d %0, %1 {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1]} : (tensor<1x8x8x20xf32>, tensor<2x9x16xf32>) -> tensor<1x4x4x20xf32>
    func.return
  }
  // CHECK: graph.depthwise2d %0, %1 {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1]} : (tensor<1x8x8x20xf32>, tensor<2x9x16xf32>) -> tensor<1x4x4x20xf32>

  func.func @conv(%0: tensor<1x3x8x8xf32>, %1: tensor<5x3x3x3xf32>) {
    %2 = graph.conv %0, %1 {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<1x3x8x8xf32>, tensor<5x3x3x3xf32>) -> tensor<1x5x4x4xf32>
    func.return
  }
  // CHECK: graph.conv %0, %1 {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<1x3x8x8xf32>, tensor<5x3x3x3xf32>) -> tensor<1x5x4x4xf32>

  func.func @gemm(%0: tensor<2x3xf32>, %1: tensor<4x3xf32>, %2: tensor<4xf32>) {
    %3 = graph.gemm %0, %1, %2 {trans_b = true} : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    func.return
  }
  // CHECK: graph.gemm %0, %1, %2 {trans_b = true} : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<2x4xf32>

  func.func @conv_transpose(%0: tensor<1x3x4x4xf32>, %1: tensor<3x5x3x3xf32>) {
    %2 = graph.conv_transpose %0, %1 {strides = [2, 2], pads = [1, 1, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x3x4x4xf32>, tensor<3x5x3x3xf32>) -> tensor<1x5x8x8xf32>
    func.return
  }
  // CHECK: graph.conv_transpose %0, %1 {strides = [2, 2], pads = [1, 1, 0, 0], dilations = [1, 1], groups = 1} : (tensor<1x3x4x4xf32>, tensor<3x5x3x3xf32>) -> tensor<1x5x8x8xf32>

  func.func @window2d(%0: tensor<1x8x8x3xf32>) {
    %1 = graph.window2d %0 {fn = "max", kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]} : (tensor<1x8x8x3xf32>) -> tensor<1x4x4x3xf32>
    func.return
  }
  // CHECK: graph.window2d %0 {fn = "max", kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]} : (tensor<1x8x8x3xf32>) -> tensor<1x4x4x3xf32>

  func.func @max_pool(%0: tensor<1x3x8x8xf32>) {
    %1 = graph.max_pool %0 {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>
    func.return
  }
  // CHECK: graph.max_pool %0 {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>

  func.func @avg_pool(%0: tensor<1x3x8x8xf32>) {
    %1 = graph.avg_pool %0 {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>
    func.return
  }
  // CHECK: graph.avg_pool %0 {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>

  func.func @global_average_pool(%0: tensor<1x3x8x8xf32>) {
    %1 = graph.global_average_pool %0 : (tensor<1x3x8x8xf32>) -> tensor<1x3x1x1xf32>
    func.return
  }
  // CHECK: graph.global_average_pool %0 : (tensor<1x3x8x8xf32>) -> tensor<1x3x1x1xf32>

  func.func @global_max_pool(%0: tensor<1x3x8x8xf32>) {
    %1 = graph.global_max_pool %0 : (tensor<1x3x8x8xf32>) -> tensor<1x3x1x1xf32>
    func.return
  }
  // CHECK: graph.global_max_pool %0 : (tensor<1x3x8x8xf32>) -> tensor<1x3x1x1xf32>

  func.func @reduce_sum(%0: tensor<2x8xf32>) {
    %1 = graph.reduce_sum %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
    func.return
  }
  // CHECK: graph.reduce_sum %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>

  func.func @reduce_max(%0: tensor<2x8xf32>) {
    %1 = graph.reduce_max %0 {axes = [0]} : (tensor<2x8xf32>) -> tensor<8xf32>
    func.return
  }
  // CHECK: graph.reduce_max %0 {axes = [0]} : (tensor<2x8xf32>) -> tensor<8xf32>

  func.func @reduce_min(%0: tensor<2x8xf32>) {
    %1 = graph.reduce_min %0 {axes = [0]} : (tensor<2x8xf32>) -> tensor<8xf32>
    func.return
  }
  // CHECK: graph.reduce_min %0 {axes = [0]} : (tensor<2x8xf32>) -> tensor<8xf32>

  func.func @reduce_prod(%0: tensor<2x8xf32>) {
    %1 = graph.reduce_prod %0 {axes = [0]} : (tensor<2x8xf32>) -> tensor<8xf32>
    func.return
  }
  // CHECK: graph.reduce_prod %0 {axes = [0]} : (tensor<2x8xf32>) -> tensor<8xf32>

  func.func @reduce_mean(%0: tensor<2x8xf32>) {
    %1 = graph.reduce_mean %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
    func.return
  }
  // CHECK: graph.reduce_mean %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>

  func.func @reduce_l2(%0: tensor<2x8xf32>) {
    %1 = graph.reduce_l2 %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
    func.return
  }
  // CHECK: graph.reduce_l2 %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>

  func.func @softmax(%0: tensor<2x8xf32>) {
    %1 = graph.softmax %0 {axes = [1]} : (tensor<2x8xf32>) -> tensor<2x8xf32>
    func.return
  }
  // CHECK: graph.softmax %0 {axes = [1]} : (tensor<2x8xf32>) -> tensor<2x8xf32>

  func.func @log_softmax(%0: tensor<2x8xf32>) {
    %1 = graph.log_softmax %0 {axes = [1]} : (tensor<2x8xf32>) -> tensor<2x8xf32>
    func.return
  }
  // CHECK: graph.log_softmax %0 {axes = [1]} : (tensor<2x8xf32>) -> tensor<2x8xf32>

  func.func @lstm(%0: tensor<2x2x3xf32>, %1: tensor<1x16x3xf32>, %2: tensor<1x16x4xf32>, %3: tensor<1x32xf32>) {
    %4, %5, %6 = graph.lstm %0, %1, %2, %3 {inputs = [0, 1, 2, 3], direction = "forward", activations = ["sigmoid", "tanh", "tanh"]} : (tensor<2x2x3xf32>, tensor<1x16x3xf32>, tensor<1x16x4xf32>, tensor<1x32xf32>) -> (tensor<2x1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>)
    func.return
  }
  // CHECK: graph.lstm %0, %1, %2, %3 {inputs = [0, 1, 2, 3], direction = "forward", activations = ["sigmoid", "tanh", "tanh"]} : (tensor<2x2x3xf32>, tensor<1x16x3xf32>, tensor<1x16x4xf32>, tensor<1x32xf32>) -> (tensor<2x1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>)

  func.func @gru(%0: tensor<2x2x3xf32>, %1: tensor<1x12x3xf32>, %2: tensor<1x12x4xf32>) {
    %3, %4 = graph.gru %0, %1, %2 {inputs = [0, 1, 2], direction = "reverse", activations = ["sigmoid", "tanh"]} : (tensor<2x2x3xf32>, tensor<1x12x3xf32>, tensor<1x12x4xf32>) -> (tensor<2x1x2x4xf32>, tensor<1x2x4xf32>)
    func.return
  }
  // CHECK: graph.gru %0, %1, %2 {inputs = [0, 1, 2], direction = "reverse", activations = ["sigmoid", "tanh"]} : (tensor<2x2x3xf32>, tensor<1x12x3xf32>, tensor<1x12x4xf32>) -> (tensor<2x1x2x4xf32>, tensor<1x2x4xf32>)

  func.func @rnn(%0: tensor<2x2x3xf32>, %1: tensor<2x4x3xf32>, %2: tensor<2x4x4xf32>) {
    %3, %4 = graph.rnn %0, %1, %2 {inputs = [0, 1, 2], direction = "bidirectional", activations = ["tanh", "tanh"]} : (tensor<2x2x3xf32>, tensor<2x4x3xf32>, tensor<2x4x4xf32>) -> (tensor<2x2x2x4xf32>, tensor<2x2x4xf32>)
    func.return
  }
  // CHECK: graph.rnn %0, %1, %2 {inputs = [0, 1, 2], direction = "bidirectional", activations = ["tanh", "tanh"]} : (tensor<2x2x3xf32>, tensor<2x4x3xf32>, tensor<2x4x4xf32>) -> (tensor<2x2x2x4xf32>, tensor<2x2x4xf32>)

  func.func @recurrence(%0: tensor<2x2x4xf32>, %1: tensor<1x4x4xf32>) {
    %2, %3 = graph.recurrence %0, %1 {cell = "rnn", activations = ["tanh"], reverse = [0], initial = []} : (tensor<2x2x4xf32>, tensor<1x4x4xf32>) -> (tensor<2x1x2x4xf32>, tensor<1x2x4xf32>)
    func.return
  }
  // CHECK: graph.recurrence %0, %1 {cell = "rnn", activations = ["tanh"], reverse = [0], initial = []} : (tensor<2x2x4xf32>, tensor<1x4x4xf32>) -> (tensor<2x1x2x4xf32>, tensor<1x2x4xf32>)

  func.func @layer_norm(%0: tensor<2x8xf32>, %1: tensor<8xf32>, %2: tensor<8xf32>) {
    %3 = graph.layer_norm %0, %1, %2 {axis = 1, epsilon = 1.0e-05} : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
    func.return
  }
  // CHECK: graph.layer_norm %0, %1, %2 {axis = 1, epsilon = 1.0e-05} : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8xf32>

  func.func @batch_norm(%0: tensor<1x3x4x4xf32>, %1: tensor<3xf32>, %2: tensor<3xf32>, %3: tensor<3xf32>, %4: tensor<3xf32>) {
    %5 = graph.batch_norm %0, %1, %2, %3, %4 {epsilon = 1.0e-05} : (tensor<1x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x4x4xf32>
    func.return
  }
  // CHECK: graph.batch_norm %0, %1, %2, %3, %4 {epsilon = 1.0e-05} : (tensor<1x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x4x4xf32>

  func.func @instance_norm(%0: tensor<1x3x4x4xf32>, %1: tensor<3xf32>, %2: tensor<3xf32>) {
    %3 = graph.instance_norm %0, %1, %2 {epsilon = 1.0e-05} : (tensor<1x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x4x4xf32>
    func.return
  }
  // CHECK: graph.instance_norm %0, %1, %2 {epsilon = 1.0e-05} : (tensor<1x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x4x4xf32>

  func.func @group_norm(%0: tensor<1x4x4x4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>) {
    %3 = graph.group_norm %0, %1, %2 {groups = 2, epsilon = 1.0e-05} : (tensor<1x4x4x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32>
    func.return
  }
  // CHECK: graph.group_norm %0, %1, %2 {groups = 2, epsilon = 1.0e-05} : (tensor<1x4x4x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32>

  func.func @group_conv2d(%0: tensor<1x8x8x2x3xf32>, %1: tensor<2x36x5xf32>) {
    %2 = graph.group_conv2d %0, %1 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : (tensor<1x8x8x2x3xf32>, tensor<2x36x5xf32>) -> tensor<1x8x8x10xf32>
    func.return
  }
  // CHECK: graph.group_conv2d %0, %1 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : (tensor<1x8x8x2x3xf32>, tensor<2x36x5xf32>) -> tensor<1x8x8x10xf32>

  func.func @lp_pool(%0: tensor<1x3x8x8xf32>) {
    %1 = graph.lp_pool %0 {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1], p = 2} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>
    func.return
  }
  // CHECK: graph.lp_pool %0 {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1], p = 2} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>

  func.func @global_lp_pool(%0: tensor<1x3x8x8xf32>) {
    %1 = graph.global_lp_pool %0 {p = 2} : (tensor<1x3x8x8xf32>) -> tensor<1x3x1x1xf32>
    func.return
  }
  // CHECK: graph.global_lp_pool %0 {p = 2} : (tensor<1x3x8x8xf32>) -> tensor<1x3x1x1xf32>

  func.func @reduce_l1(%0: tensor<2x8xf32>) {
    %1 = graph.reduce_l1 %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
    func.return
  }
  // CHECK: graph.reduce_l1 %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>

  func.func @reduce_sum_square(%0: tensor<2x8xf32>) {
    %1 = graph.reduce_sum_square %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
    func.return
  }
  // CHECK: graph.reduce_sum_square %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>

  func.func @reduce_log_sum(%0: tensor<2x8xf32>) {
    %1 = graph.reduce_log_sum %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
    func.return
  }
  // CHECK: graph.reduce_log_sum %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>

  func.func @reduce_log_sum_exp(%0: tensor<2x8xf32>) {
    %1 = graph.reduce_log_sum_exp %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
    func.return
  }
  // CHECK: graph.reduce_log_sum_exp %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>

  func.func @rms_norm(%0: tensor<2x8xf32>, %1: tensor<8xf32>) {
    %2 = graph.rms_norm %0, %1 {axis = 1, epsilon = 1.0e-05} : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
    func.return
  }
  // CHECK: graph.rms_norm %0, %1 {axis = 1, epsilon = 1.0e-05} : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>

  func.func @mean_variance_norm(%0: tensor<2x3x4x4xf32>) {
    %1 = graph.mean_variance_norm %0 {axes = [0, 2, 3]} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
    func.return
  }
  // CHECK: graph.mean_variance_norm %0 {axes = [0, 2, 3]} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>

  func.func @lp_norm(%0: tensor<2x8xf32>) {
    %1 = graph.lp_norm %0 {axis = 1, p = 2} : (tensor<2x8xf32>) -> tensor<2x8xf32>
    func.return
  }
  // CHECK: graph.lp_norm %0 {axis = 1, p = 2} : (tensor<2x8xf32>) -> tensor<2x8xf32>

  func.func @lrn(%0: tensor<1x6x4x4xf32>) {
    %1 = graph.lrn %0 {size = 3, alpha = 0.0001, beta = 0.75, bias = 1.0} : (tensor<1x6x4x4xf32>) -> tensor<1x6x4x4xf32>
    func.return
  }
  // CHECK: graph.lrn %0 {size = 3, alpha = 0.0001, beta = 0.75, bias = 1.0} : (tensor<1x6x4x4xf32>) -> tensor<1x6x4x4xf32>

  func.func @reshape(%0: tensor<3x4xf32>) {
    %1 = graph.reshape %0 {shape = [2, 6]} : (tensor<3x4xf32>) -> tensor<2x6xf32>
    func.return
  }
  // CHECK: graph.reshape %0 {shape = [2, 6]} : (tensor<3x4xf32>) -> tensor<2x6xf32>

  func.func @transpose(%0: tensor<1x3x4x5xf32>) {
    %1 = graph.transpose %0 {perm = [0, 2, 3, 1]} : (tensor<1x3x4x5xf32>) -> tensor<1x4x5x3xf32>
    func.return
  }
  // CHECK: graph.transpose %0 {perm = [0, 2, 3, 1]} : (tensor<1x3x4x5xf32>) -> tensor<1x4x5x3xf32>

  func.func @slice(%0: tensor<2x8xf32>) {
    %1 = graph.slice %0 {starts = [0, 1], sizes = [2, 3], steps = [1, 2]} : (tensor<2x8xf32>) -> tensor<2x3xf32>
    func.return
  }
  // CHECK: graph.slice %0 {starts = [0, 1], sizes = [2, 3], steps = [1, 2]} : (tensor<2x8xf32>) -> tensor<2x3xf32>

  func.func @expand(%0: tensor<3x1xf32>) {
    %1 = graph.expand %0 {shape = [2, 3, 4]} : (tensor<3x1xf32>) -> tensor<2x3x4xf32>
    func.return
  }
  // CHECK: graph.expand %0 {shape = [2, 3, 4]} : (tensor<3x1xf32>) -> tensor<2x3x4xf32>

  func.func @concat(%0: tensor<2x3xf32>, %1: tensor<2x1xf32>) {
    %2 = graph.concat %0, %1 {axis = 1} : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
    func.return
  }
  // CHECK: graph.concat %0, %1 {axis = 1} : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>

  func.func @pad(%0: tensor<2x3xf32>) {
    %1 = graph.pad %0 {before = [0, 1], after = [0, 2]} : (tensor<2x3xf32>) -> tensor<2x6xf32>
    func.return
  }
  // CHECK: graph.pad %0 {before = [0, 1], after = [0, 2]} : (tensor<2x3xf32>) -> tensor<2x6xf32>

  func.func @constant() {
    %0 = graph.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
    func.return
  }
  // CHECK: graph.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>

  func.func @weight() {
    %0 = graph.weight "9f86d081884c7d659a2feaa0c55ad015" : tensor<64x3x7x7xf32>
    func.return
  }
  // CHECK: graph.weight "9f86d081884c7d659a2feaa0c55ad015" : tensor<64x3x7x7xf32>

  func.func @kernel(%0: tensor<4xf32>, %1: tensor<4xf32>) {
    %2 = graph.kernel(%a = %0, %b = %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
      %c = graph.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %d = graph.relu %c : (tensor<4xf32>) -> tensor<4xf32>
      graph.yield %d : tensor<4xf32>
    }
    func.return
  }
  // CHECK: graph.kernel(%a = %0, %b = %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: graph.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: graph.relu %c : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: graph.yield %d : tensor<4xf32>

  func.func @launch(%0: tensor<4xf32>) {
    %1 = graph.launch @kernel(%0) : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.launch @kernel(%0) : (tensor<4xf32>) -> tensor<4xf32>

  func.func @body(%0: tensor<i32>, %1: tensor<i1>, %2: tensor<4xf32>, %3: tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>) {
    func.return %1, %2 : tensor<i1>, tensor<4xf32>
  }
  func.func @flow(%0: tensor<i32>, %1: tensor<i1>, %2: tensor<4xf32>) {
    %3 = graph.loop %0, %1, %2, %2 {body = @body, states = 1, counted = true, tested = true} : (tensor<i32>, tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %4 = graph.if %1, %3 {then = @same, otherwise = @one, split = 1} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
  // CHECK: graph.loop %0, %1, %2, %2 {body = @body, states = 1, counted = true, tested = true} : (tensor<i32>, tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: graph.if %1, %3 {then = @same, otherwise = @one, split = 1} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>

  func.func @same(%0: tensor<4xf32>) -> tensor<4xf32> {
    func.return %0 : tensor<4xf32>
  }
  func.func @one() -> tensor<4xf32> {
    %0 = graph.constant dense<1.000000e+00> : tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
}
