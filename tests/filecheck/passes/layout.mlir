// RUN: stepwell-opt %s -p layout --verify-each | filecheck %s

builtin.module {
  // Two transposes with elementwise ops between them cancel; a constant is transposed now.
  // CHECK-LABEL: func.func @between
  // CHECK-NEXT:    %[[C:.*]] = graph.constant {{.*}} : tensor<1x1x1x2xf16>
  // CHECK-NEXT:    %[[A:.*]] = graph.mul %x, %[[C]] : (tensor<1x4x5x2xf16>, tensor<1x1x1x2xf16>) -> tensor<1x4x5x2xf16>
  // CHECK-NEXT:    %[[B:.*]] = graph.relu %[[A]]
  // CHECK-NEXT:    func.return %[[B]]
  func.func @between(%x: tensor<1x4x5x2xf16>) -> tensor<1x4x5x2xf16> {
    %c = graph.constant dense<[[[1.0]], [[2.0]]]> : tensor<2x1x1xf16>
    %0 = graph.transpose %x {perm = [0, 3, 1, 2]} : (tensor<1x4x5x2xf16>) -> tensor<1x2x4x5xf16>
    %1 = graph.mul %0, %c : (tensor<1x2x4x5xf16>, tensor<2x1x1xf16>) -> tensor<1x2x4x5xf16>
    %2 = graph.relu %1 : (tensor<1x2x4x5xf16>) -> tensor<1x2x4x5xf16>
    %3 = graph.transpose %2 {perm = [0, 2, 3, 1]} : (tensor<1x2x4x5xf16>) -> tensor<1x4x5x2xf16>
    func.return %3 : tensor<1x4x5x2xf16>
  }

  // A concatenation, a slice and a reduction have their axes renamed.
  // CHECK-LABEL: func.func @axes
  // CHECK-NEXT:    graph.concat %x, %y {axis = 3}
  // CHECK-NEXT:    graph.slice {{.*}} {starts = [0, 1, 0, 2], sizes = [1, 3, 5, 2], steps = [1, 1, 1, 1]}
  // CHECK-NEXT:    graph.reduce_sum {{.*}} {axes = [1, 2], keepdims = true}
  // CHECK-NEXT:    graph.reshape {{.*}} {shape = [1, 2]}
  // CHECK-NEXT:    func.return
  func.func @axes(%x: tensor<1x4x5x2xf16>, %y: tensor<1x4x5x3xf16>) -> tensor<1x2xf16> {
    %0 = graph.transpose %x {perm = [0, 3, 1, 2]} : (tensor<1x4x5x2xf16>) -> tensor<1x2x4x5xf16>
    %1 = graph.transpose %y {perm = [0, 3, 1, 2]} : (tensor<1x4x5x3xf16>) -> tensor<1x3x4x5xf16>
    %2 = graph.concat %0, %1 {axis = 1} : (tensor<1x2x4x5xf16>, tensor<1x3x4x5xf16>) -> tensor<1x5x4x5xf16>
    %3 = graph.slice %2 {starts = [0, 2, 1, 0], sizes = [1, 2, 3, 5], steps = [1, 1, 1, 1]} : (tensor<1x5x4x5xf16>) -> tensor<1x2x3x5xf16>
    %4 = graph.reduce_sum %3 {axes = [2, 3]} : (tensor<1x2x3x5xf16>) -> tensor<1x2xf16>
    func.return %4 : tensor<1x2xf16>
  }

  // Reduced axes keep their order, or bits would change: here the transpose stays.
  // CHECK-LABEL: func.func @order
  // CHECK-NEXT:    graph.transpose
  // CHECK-NEXT:    graph.reduce_sum {{.*}} {axes = [0, 1], keepdims = true}
  func.func @order(%x: tensor<4x5xf16>) -> tensor<1x1xf16> {
    %0 = graph.transpose %x {perm = [1, 0]} : (tensor<4x5xf16>) -> tensor<5x4xf16>
    %1 = graph.reduce_sum %0 {axes = [0, 1], keepdims = true} : (tensor<5x4xf16>) -> tensor<1x1xf16>
    func.return %1 : tensor<1x1xf16>
  }

  // The small side is transposed.
  // CHECK-LABEL: func.func @cheapest
  // CHECK-NEXT:    graph.transpose %y {perm = [0, 2, 3, 1]} : (tensor<1x2x1x5xf16>)
  // CHECK-NEXT:    graph.add %x, %{{.*}} : (tensor<1x4x5x2xf16>, tensor<1x1x5x2xf16>)
  // CHECK-NEXT:    func.return
  func.func @cheapest(%x: tensor<1x4x5x2xf16>, %y: tensor<1x2x1x5xf16>) -> tensor<1x4x5x2xf16> {
    %0 = graph.transpose %x {perm = [0, 3, 1, 2]} : (tensor<1x4x5x2xf16>) -> tensor<1x2x4x5xf16>
    %1 = graph.add %0, %y : (tensor<1x2x4x5xf16>, tensor<1x2x1x5xf16>) -> tensor<1x2x4x5xf16>
    %2 = graph.transpose %1 {perm = [0, 2, 3, 1]} : (tensor<1x2x4x5xf16>) -> tensor<1x4x5x2xf16>
    func.return %2 : tensor<1x4x5x2xf16>
  }

  // A transpose passes a reshape that joins neighbours: channels last to tokens, as in a vision transformer.
  // CHECK-LABEL: func.func @through_reshape
  // CHECK-NEXT:    graph.reshape %x {shape = [1, 20, 2]}
  // CHECK-NEXT:    func.return
  func.func @through_reshape(%x: tensor<1x4x5x2xf16>) -> tensor<1x20x2xf16> {
    %0 = graph.transpose %x {perm = [0, 3, 1, 2]} : (tensor<1x4x5x2xf16>) -> tensor<1x2x4x5xf16>
    %1 = graph.reshape %0 {shape = [1, 2, 20]} : (tensor<1x2x4x5xf16>) -> tensor<1x2x20xf16>
    %2 = graph.transpose %1 {perm = [0, 2, 1]} : (tensor<1x2x20xf16>) -> tensor<1x20x2xf16>
    func.return %2 : tensor<1x20x2xf16>
  }

  // CHECK-LABEL: func.func @heads
  // CHECK-NEXT:    graph.transpose
  // CHECK-NEXT:    graph.reshape {{.*}} {shape = [4, 6]}
  func.func @heads(%x: tensor<2x4x3xf16>) -> tensor<4x6xf16> {
    %0 = graph.transpose %x {perm = [1, 0, 2]} : (tensor<2x4x3xf16>) -> tensor<4x2x3xf16>
    %1 = graph.reshape %0 {shape = [4, 6]} : (tensor<4x2x3xf16>) -> tensor<4x6xf16>
    func.return %1 : tensor<4x6xf16>
  }

  // CHECK-LABEL: func.func @into_matmul
  // CHECK-NEXT:    graph.matmul %a, %b {trans_b = true}
  // CHECK-NEXT:    func.return
  func.func @into_matmul(%a: tensor<2x3xf16>, %b: tensor<4x3xf16>) -> tensor<2x4xf16> {
    %0 = graph.transpose %b {perm = [1, 0]} : (tensor<4x3xf16>) -> tensor<3x4xf16>
    %1 = graph.matmul %a, %0 : (tensor<2x3xf16>, tensor<3x4xf16>) -> tensor<2x4xf16>
    func.return %1 : tensor<2x4xf16>
  }
}
