// Softmax is decomposed, its inner edges are f32, and all of it is one kernel whose rows stay on chip: reductions take as
// many of them at a time as a vector holds.

// RUN-LEVELS: seed=91; precision=fp32,fp16
// RUN: stepwell-opt %s --target tiny -p 'stage-graph{policy=fp32}' | filecheck %s --check-prefix GRAPH
// RUN: stepwell-opt %s --target tiny -p 'stage-graph{policy=fp32},stage-tile,stage-npu' | filecheck %s --check-prefix NPU

// GRAPH:      func.func private @k0(%x: tensor<70x90xf16>) -> tensor<70x90xf16>
// GRAPH-NEXT:   graph.reduce_max %x {{.*}} -> tensor<70x1xf32>
// GRAPH-NEXT:   graph.sub {{.*}} -> tensor<70x90xf32>
// GRAPH-NEXT:   graph.exp
// GRAPH-NEXT:   graph.reduce_sum
// GRAPH-NEXT:   graph.reciprocal {{.*}} -> tensor<70x1xf32>
// GRAPH-NEXT:   graph.mul {{.*}} -> tensor<70x90xf16>
// GRAPH-NEXT:   func.return

// NPU:      npu.loop
// NPU:        npu.load
// NPU:        npu.vreduce fn=max {{.*}} n1=90 n2=
// NPU-NEXT:   npu.vmap fn=sub
// NPU:        npu.vmap fn=exp
// NPU-NEXT:   npu.vreduce fn=sum
// NPU:        npu.vmap fn=reciprocal
// NPU:        npu.vmap fn=mul
// NPU:        npu.store
// NPU:      }

builtin.module {
  func.func @main(%x: tensor<70x90xf16>) -> tensor<70x90xf16> {
    %0 = graph.softmax %x {axes = [1]} : (tensor<70x90xf16>) -> tensor<70x90xf16>
    func.return %0 : tensor<70x90xf16>
  }
}
