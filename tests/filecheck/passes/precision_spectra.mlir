// RUN: stepwell-opt %s -p precision | filecheck %s

// From an input to a logarithm with an ε that f16 cannot hold, contractions included, edges are f32.

// CHECK-LABEL: func.func @decibels
// CHECK:         graph.conv %x{{.*}} : (tensor<1x1x64xf32>, tensor<4x1x8xf32>) -> tensor<1x4x57xf32>
// CHECK:         graph.log {{.*}} -> tensor<1x4x57xf16>
// CHECK:         graph.relu {{.*}} -> tensor<1x4x57xf16>
func.func @decibels(%x: tensor<1x1x64xf32>) -> tensor<1x4x57xf32> {
  %w = graph.constant dense<0.5> : tensor<4x1x8xf32>
  %e = graph.constant dense<1.0e-10> : tensor<f32>
  %0 = graph.conv %x, %w {kernel = [8], strides = [1], pads = [0, 0], dilations = [1], groups = 1} : (tensor<1x1x64xf32>, tensor<4x1x8xf32>) -> tensor<1x4x57xf32>
  %1 = graph.mul %0, %0 : (tensor<1x4x57xf32>, tensor<1x4x57xf32>) -> tensor<1x4x57xf32>
  %2 = graph.add %1, %e : (tensor<1x4x57xf32>, tensor<f32>) -> tensor<1x4x57xf32>
  %3 = graph.log %2 : (tensor<1x4x57xf32>) -> tensor<1x4x57xf32>
  %4 = graph.relu %3 : (tensor<1x4x57xf32>) -> tensor<1x4x57xf32>
  func.return %4 : tensor<1x4x57xf32>
}

// What comes through another function than those of a spectrum is as exact as f16 was.

// CHECK-LABEL: func.func @likelihood
// CHECK:         graph.conv {{.*}} : (tensor<1x1x64xf16>, tensor<4x1x8xf16>) -> tensor<1x4x57xf16>
func.func @likelihood(%x: tensor<1x1x64xf32>) -> tensor<1x4x57xf32> {
  %w = graph.constant dense<0.5> : tensor<4x1x8xf32>
  %e = graph.constant dense<1.0e-10> : tensor<f32>
  %0 = graph.conv %x, %w {kernel = [8], strides = [1], pads = [0, 0], dilations = [1], groups = 1} : (tensor<1x1x64xf32>, tensor<4x1x8xf32>) -> tensor<1x4x57xf32>
  %1 = graph.sigmoid %0 : (tensor<1x4x57xf32>) -> tensor<1x4x57xf32>
  %2 = graph.add %1, %e : (tensor<1x4x57xf32>, tensor<f32>) -> tensor<1x4x57xf32>
  %3 = graph.log %2 : (tensor<1x4x57xf32>) -> tensor<1x4x57xf32>
  func.return %3 : tensor<1x4x57xf32>
}
