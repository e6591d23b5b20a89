// RUN: stepwell-opt %s -p border | filecheck %s

// 64-bit integers stop at the border: the casts go, callers still see i64.
func.func @main(%x: tensor<4xi64>) -> (tensor<4xi64>, tensor<3xf32>) {
  %0 = graph.cast %x : (tensor<4xi64>) -> tensor<4xi32>
  %1 = graph.add %0, %0 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %2 = graph.cast %1 : (tensor<4xi32>) -> tensor<4xi64>
  %3 = graph.constant dense<1.0> : tensor<3xf32>
  func.return %2, %3 : tensor<4xi64>, tensor<3xf32>
}

// CHECK:      func.func @main(%x: tensor<4xi32>) -> (tensor<4xi32>, tensor<3xf32>)
// CHECK-SAME: input_borders = ["i64"], output_borders = ["i64", "f32"]
// CHECK-NEXT:   %{{.*}} = graph.add %x, %x : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
// A constant that is an output is copied, so that it has a place.
// CHECK:        %[[COPY:.*]] = graph.copy %{{.*}} : (tensor<3xf32>) -> tensor<3xf32>
// CHECK-NEXT:   func.return %{{.*}}, %[[COPY]] : tensor<4xi32>, tensor<3xf32>
