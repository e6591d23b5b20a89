// RUN: stepwell-opt %s -p fuse --verify-each | filecheck %s
// RUN: stepwell-opt %s -p 'fuse{enabled=false}' | filecheck %s --check-prefix ALONE
// RUN: stepwell-opt %s -p fuse --notes 2>&1 >/dev/null | filecheck %s --check-prefix NOTE

builtin.module {
  // CHECK-LABEL: func.func @epilogue
  // CHECK-NEXT:    graph.kernel(%a_1 = %a, %b_1 = %b, %v_1 = %v, %r_1 = %r)
  // CHECK-NEXT:      graph.matmul
  // CHECK-NEXT:      graph.constant dense<2.000000e+00>
  // CHECK-NEXT:      graph.mul
  // CHECK-NEXT:      graph.add
  // CHECK-NEXT:      graph.add
  // CHECK-NEXT:      graph.yield
  // CHECK-NEXT:    }
  // CHECK-NEXT:    func.return
  // ALONE-LABEL: func.func @epilogue
  // ALONE-COUNT-4: graph.kernel
  // ALONE:         func.return
  func.func @epilogue(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>, %v: tensor<2xf32>, %r: tensor<4x2xf16>) -> tensor<4x2xf16> {
    %two = graph.constant dense<2.0> : tensor<f32>
    %0 = graph.matmul %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
    %1 = graph.mul %0, %two : (tensor<4x2xf16>, tensor<f32>) -> tensor<4x2xf16>
    %2 = graph.add %1, %v : (tensor<4x2xf16>, tensor<2xf32>) -> tensor<4x2xf16>
    %3 = graph.add %2, %r : (tensor<4x2xf16>, tensor<4x2xf16>) -> tensor<4x2xf16>
    func.return %3 : tensor<4x2xf16>
  }

  // A diamond has one result, so it fits.
  // CHECK-LABEL: func.func @diamond
  // CHECK:         graph.kernel
  // CHECK-NOT:     graph.kernel
  // CHECK:         func.return
  func.func @diamond(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>) -> tensor<4x2xf16> {
    %0 = graph.matmul %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
    %1 = graph.tanh %0 : (tensor<4x2xf16>) -> tensor<4x2xf16>
    %2 = graph.mul %0, %1 : (tensor<4x2xf16>, tensor<4x2xf16>) -> tensor<4x2xf16>
    func.return %2 : tensor<4x2xf16>
  }

  // A value that two kernels need is computed once.
  // CHECK-LABEL: func.func @shared
  // CHECK-COUNT-3: graph.kernel
  // CHECK:         func.return
  // NOTE: graph.relu: not fused into the kernel of graph.matmul: it is the only user of the result (found 2 users)
  func.func @shared(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>, %c: tensor<2x2xf16>) -> (tensor<4x2xf16>, tensor<4x2xf16>) {
    %0 = graph.matmul %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
    %1 = graph.relu %0 : (tensor<4x2xf16>) -> tensor<4x2xf16>
    %2 = graph.matmul %0, %c : (tensor<4x2xf16>, tensor<2x2xf16>) -> tensor<4x2xf16>
    func.return %1, %2 : tensor<4x2xf16>, tensor<4x2xf16>
  }

  // The second add waits for a matmul that waits for the first: they are not one kernel.
  // CHECK-LABEL: func.func @convex
  // CHECK:         graph.kernel
  // CHECK-NEXT:      graph.relu
  // CHECK-NEXT:      graph.yield
  // CHECK:         graph.kernel
  // CHECK-NEXT:      graph.matmul
  // CHECK-NEXT:      graph.add
  // CHECK-NEXT:      graph.yield
  func.func @convex(%x: tensor<4x4xf16>, %w: tensor<4x4xf16>) -> tensor<4x4xf16> {
    %0 = graph.relu %x : (tensor<4x4xf16>) -> tensor<4x4xf16>
    %1 = graph.matmul %0, %w : (tensor<4x4xf16>, tensor<4x4xf16>) -> tensor<4x4xf16>
    %2 = graph.add %0, %1 : (tensor<4x4xf16>, tensor<4x4xf16>) -> tensor<4x4xf16>
    func.return %2 : tensor<4x4xf16>
  }

  // A whole softmax is a row group; what its result needs besides comes along.
  // CHECK-LABEL: func.func @rows
  // CHECK-NEXT:    graph.kernel(%x_1 = %x, %y_1 = %y)
  // CHECK-NEXT:      graph.relu
  // CHECK-NEXT:      graph.reduce_max
  // CHECK-NEXT:      graph.sub
  // CHECK-NEXT:      graph.exp
  // CHECK-NEXT:      graph.reduce_sum
  // CHECK-NEXT:      graph.div
  // CHECK-NEXT:      graph.tanh
  // CHECK-NEXT:      graph.mul
  // CHECK-NEXT:      graph.yield
  // CHECK-NEXT:    }
  // CHECK-NEXT:    func.return
  func.func @rows(%x: tensor<2x8xf16>, %y: tensor<2x8xf16>) -> tensor<2x8xf16> {
    %r = graph.relu %x : (tensor<2x8xf16>) -> tensor<2x8xf16>
    %0 = graph.reduce_max %r {axes = [1], keepdims = true} : (tensor<2x8xf16>) -> tensor<2x1xf32>
    %1 = graph.sub %r, %0 : (tensor<2x8xf16>, tensor<2x1xf32>) -> tensor<2x8xf32>
    %2 = graph.exp %1 : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %3 = graph.reduce_sum %2 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
    %4 = graph.div %2, %3 : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf16>
    %t = graph.tanh %y : (tensor<2x8xf16>) -> tensor<2x8xf16>
    %5 = graph.mul %4, %t : (tensor<2x8xf16>, tensor<2x8xf16>) -> tensor<2x8xf16>
    func.return %5 : tensor<2x8xf16>
  }

  // Two results: the sum goes on, and is normalised.
  // CHECK-LABEL: func.func @two_results
  // CHECK-NEXT:    graph.kernel({{.*}}) : (tensor<2x8xf16>, tensor<2x8xf16>) -> (tensor<2x8xf16>, tensor<2x1xf32>)
  // CHECK-NEXT:      graph.add
  // CHECK-NEXT:      graph.reduce_sum
  func.func @two_results(%x: tensor<2x8xf16>, %y: tensor<2x8xf16>) -> (tensor<2x8xf16>, tensor<2x1xf32>) {
    %0 = graph.add %x, %y : (tensor<2x8xf16>, tensor<2x8xf16>) -> tensor<2x8xf16>
    %1 = graph.reduce_sum %0 {axes = [1], keepdims = true} : (tensor<2x8xf16>) -> tensor<2x1xf32>
    func.return %0, %1 : tensor<2x8xf16>, tensor<2x1xf32>
  }

  // Views that move elements stand alone; reshapes need no kernel.
  // CHECK-LABEL: func.func @views
  // CHECK-NEXT:    graph.reshape
  // CHECK-NEXT:    graph.kernel
  // CHECK-NEXT:      graph.transpose
  // CHECK-NEXT:      graph.yield
  // CHECK-NEXT:    }
  // CHECK-NEXT:    graph.kernel
  // CHECK-NEXT:      graph.relu
  // NOTE: graph.add: not fused into the kernel of graph.reduce_sum: it has the shape of the result (found (3, 3) for (1, 3))
  func.func @views(%x: tensor<6xf16>) -> (tensor<3x2xf16>, tensor<3x3xf16>) {
    %0 = graph.reshape %x {shape = [2, 3]} : (tensor<6xf16>) -> tensor<2x3xf16>
    %1 = graph.transpose %0 {perm = [1, 0]} : (tensor<2x3xf16>) -> tensor<3x2xf16>
    %2 = graph.relu %1 : (tensor<3x2xf16>) -> tensor<3x2xf16>
    %3 = graph.reduce_sum %0 {axes = [0], keepdims = true} : (tensor<2x3xf16>) -> tensor<1x3xf16>
    %c = graph.constant dense<[[1.0], [2.0], [3.0]]> : tensor<3x1xf16>
    %4 = graph.add %3, %c : (tensor<1x3xf16>, tensor<3x1xf16>) -> tensor<3x3xf16>
    func.return %2, %4 : tensor<3x2xf16>, tensor<3x3xf16>
  }
}
