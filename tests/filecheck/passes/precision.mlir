// RUN: stepwell-opt %s -p precision | filecheck %s
// RUN: stepwell-opt %s -p 'precision{policy=bf16}' | filecheck %s --check-prefix BF16
// RUN: stepwell-opt %s -p 'precision{policy=fp32}' | filecheck %s --check-prefix FP32
// RUN: not stepwell-opt %s -p 'precision{policy=fp8}' 2>&1 | filecheck %s --check-prefix ERROR
// ERROR: precision: policy is one of fp16, bf16, fp32 (found 'fp8'); change the IR or the options of the pass; reproduce with: stepwell-opt {{.*}}precision.mlir -p 'precision{policy="fp8"}'

builtin.module {
  // Inputs and outputs keep their types; a bias is f32, weights are converted.
  // CHECK-LABEL: func.func @border(%x: tensor<2x2xf32>) -> tensor<2x2xf32>
  // CHECK-NEXT:    %[[X:.*]] = graph.cast %x : (tensor<2x2xf32>) -> tensor<2x2xf16>
  // CHECK:         %[[W:.*]] = graph.constant dense<{{.*}}> : tensor<2x2xf16>
  // CHECK:         %[[Y:.*]] = graph.matmul %[[X]], %[[W]], %bias : (tensor<2x2xf16>, tensor<2x2xf16>, tensor<2xf32>) -> tensor<2x2xf16>
  // CHECK:         graph.cast %[[Y]] : (tensor<2x2xf16>) -> tensor<2x2xf32>
  // BF16-LABEL: func.func @border
  // BF16:         graph.matmul {{.*}} : (tensor<2x2xbf16>, tensor<2x2xbf16>, tensor<2xf32>) -> tensor<2x2xbf16>
  // FP32-LABEL: func.func @border
  // FP32-NOT:     graph.cast
  // FP32-LABEL: func.func @mask
  func.func @border(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %w = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
    %bias = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %0 = graph.matmul %x, %w, %bias : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
    func.return %0 : tensor<2x2xf32>
  }

  // A mask of −1e9, and its sum with the scores, are f32 up to the softmax, under every policy.
  // CHECK-LABEL: func.func @mask
  // CHECK:         graph.relu {{.*}} -> tensor<4x4xf16>
  // CHECK:         graph.affine %{{.*}} {scale = 1000000000.0, shift = -1000000000.0} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  // CHECK:         graph.add {{.*}} : (tensor<4x4xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
  // CHECK:         graph.softmax {{.*}} : (tensor<4x4xf32>) -> tensor<4x4xf16>
  // BF16-LABEL: func.func @mask
  // BF16:         graph.relu {{.*}} -> tensor<4x4xbf16>
  // BF16:         graph.add {{.*}} : (tensor<4x4xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
  // BF16:         graph.softmax {{.*}} : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  func.func @mask(%x: tensor<4x4xf32>, %valid: tensor<1x4xf32>) -> tensor<4x4xf32> {
    %scores = graph.relu %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %0 = graph.affine %valid {scale = 1.0e9, shift = -1.0e9} : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %1 = graph.add %scores, %0 : (tensor<4x4xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
    %2 = graph.softmax %1 {axes = [1]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    func.return %2 : tensor<4x4xf32>
  }

  // A bias of small numbers is no mask.
  // CHECK-LABEL: func.func @bias
  // CHECK:         graph.add {{.*}} -> tensor<4x4xf16>
  // BF16-LABEL: func.func @bias
  // BF16:         graph.add {{.*}} -> tensor<4x4xbf16>
  func.func @bias(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %b = graph.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %scores = graph.relu %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %0 = graph.add %scores, %b : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
    %1 = graph.softmax %0 {axes = [1]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    func.return %1 : tensor<4x4xf32>
  }

  // Squares and sums may outgrow f16, and an ε under a root is kept; the quotient ends the island.
  // CHECK-LABEL: func.func @norm
  // CHECK:         graph.mul {{.*}} -> tensor<2x4xf32>
  // CHECK-NEXT:    graph.reduce_sum {{.*}} -> tensor<2x1xf32>
  // CHECK:         graph.add {{.*}} -> tensor<2x1xf32>
  // CHECK-NEXT:    graph.sqrt {{.*}} -> tensor<2x1xf32>
  // CHECK-NEXT:    graph.div {{.*}} : (tensor<2x4xf16>, tensor<2x1xf32>) -> tensor<2x4xf16>
  func.func @norm(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
    %eps = graph.constant dense<1.0e-12> : tensor<f32>
    %0 = graph.mul %x, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %1 = graph.reduce_sum %0 {axes = [1], keepdims = true} : (tensor<2x4xf32>) -> tensor<2x1xf32>
    %2 = graph.add %1, %eps : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
    %3 = graph.sqrt %2 : (tensor<2x1xf32>) -> tensor<2x1xf32>
    %4 = graph.div %x, %3 : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
    func.return %4 : tensor<2x4xf32>
  }

  // A tiny shift that protects nothing is no reason for f32.
  // CHECK-LABEL: func.func @tiny
  // CHECK:         graph.affine {{.*}} : (tensor<4xf16>) -> tensor<4xf16>
  func.func @tiny(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = graph.affine %x {scale = 0.5, shift = 1.0e-7} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = graph.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return %1 : tensor<4xf32>
  }

  // What moves elements moves them unchanged; integers are left alone.
  // CHECK-LABEL: func.func @views
  // CHECK:         graph.concat {{.*}} : (tensor<2xf16>, tensor<2xf16>) -> tensor<4xf16>
  // CHECK:         graph.add %i, %i : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  func.func @views(%x: tensor<2xf32>, %i: tensor<2xi32>) -> (tensor<4xf32>, tensor<2xi32>) {
    %c = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %0 = graph.concat %x, %c {axis = 0} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
    %1 = graph.add %i, %i : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    func.return %0, %1 : tensor<4xf32>, tensor<2xi32>
  }

  // Bytes that become bytes again are not rounded to f16 on the way; the recurrence that rounds h keeps it f32.
  // CHECK-LABEL: func.func @bytes
  // CHECK:         graph.dequantize {{.*}} -> tensor<4x1x8xf32>
  // CHECK:         graph.quantize {{.*}} : (tensor<4x1x8xf32>, tensor<f32>, tensor<ui8>) -> tensor<4x1x8xui8>
  // CHECK:         graph.recurrence %g, %{{.*}}, %v {{.*}} : (tensor<4x1x8xf32>, tensor<1x8x2xf16>, tensor<1x4x2xf32>) ->
  // CHECK-SAME:      (tensor<4x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  func.func @bytes(%q: tensor<4x1x8xui8>, %s: tensor<f32>, %z: tensor<ui8>, %g: tensor<4x1x8xf32>, %r: tensor<1x8x2xf32>, %v: tensor<1x4x2xf32>) -> (tensor<4x1x8xui8>, tensor<4x1x1x2xf32>) {
    %0 = graph.dequantize %q, %s, %z : (tensor<4x1x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<4x1x8xf32>
    %1, %2 = graph.dynamic_scale %0 : (tensor<4x1x8xf32>) -> (tensor<f32>, tensor<ui8>)
    %3 = graph.quantize %0, %1, %2 : (tensor<4x1x8xf32>, tensor<f32>, tensor<ui8>) -> tensor<4x1x8xui8>
    %4, %5, %6 = graph.recurrence %g, %r, %v {cell = "lstm", activations = ["sigmoid", "tanh", "tanh"], reverse = [0], initial = [], rounded = true} : (tensor<4x1x8xf32>, tensor<1x8x2xf32>, tensor<1x4x2xf32>) -> (tensor<4x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
    func.return %3, %4 : tensor<4x1x8xui8>, tensor<4x1x1x2xf32>
  }
}
