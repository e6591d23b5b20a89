// RUN: stepwell-opt %s -p outline-kernels --verify-each | filecheck %s

builtin.module {
  // Equal kernels are one function, whatever their values are called and whatever they are launched on.
  // CHECK-LABEL: func.func @main
  // CHECK-NEXT:    %[[A:.*]] = graph.launch @k0(%x) {nodes = {{\[\[}}"First"]]} : (tensor<4xf16>) -> tensor<4xf16>
  // CHECK-NEXT:    %[[B:.*]] = graph.launch @k0(%[[A]]) {nodes = {{\[\[}}"Second", "Third"]]} : (tensor<4xf16>) -> tensor<4xf16>
  // CHECK-NEXT:    %[[C:.*]] = graph.launch @k1(%[[B]], %x) {nodes = {{\[\[\], \[\]\]}}} : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  // CHECK-NEXT:    %[[D:.*]] = graph.launch @k2(%[[C]]) {{.*}} : (tensor<4xf16>) -> tensor<4xf32>
  // CHECK-NEXT:    func.return %[[D]]
  func.func @main(%x: tensor<4xf16>) -> tensor<4xf32> {
    %0 = graph.kernel(%a = %x) : (tensor<4xf16>) -> tensor<4xf16> {
      %b = graph.relu %a : (tensor<4xf16>) -> tensor<4xf16> loc("First")
      graph.yield %b : tensor<4xf16>
    }
    %1 = graph.kernel(%c = %0) : (tensor<4xf16>) -> tensor<4xf16> {
      %d = graph.relu %c : (tensor<4xf16>) -> tensor<4xf16> loc(fused["Second", "Third"])
      graph.yield %d : tensor<4xf16>
    }
    %2 = graph.kernel(%e = %1, %f = %x) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16> {
      %two = graph.constant dense<2.0> : tensor<f32>
      %g = graph.mul %e, %two : (tensor<4xf16>, tensor<f32>) -> tensor<4xf16>
      %h = graph.add %g, %f : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
      graph.yield %h : tensor<4xf16>
    }
    %3 = graph.kernel(%i = %2) : (tensor<4xf16>) -> tensor<4xf32> {
      %j = graph.relu %i : (tensor<4xf16>) -> tensor<4xf32>
      graph.yield %j : tensor<4xf32>
    }
    func.return %3 : tensor<4xf32>
  }

  // CHECK:      func.func private @k0(%a: tensor<4xf16>) -> tensor<4xf16> {
  // CHECK-NEXT:   %b = graph.relu %a : (tensor<4xf16>) -> tensor<4xf16>
  // CHECK-NEXT:   func.return %b : tensor<4xf16>
  // CHECK-NEXT: }
  // CHECK:      func.func private @k1
  // CHECK:      func.func private @k2
  // CHECK-NOT:  func.func
}
