// A product, an activation and a vector down the whole path: one kernel at the graph level, panels and a drain at the
// tile level, tokens between the engines at the npu level.

// RUN-LEVELS: seed=90; precision=fp32,fp16; tolerance=2
// RUN: stepwell-opt %s --target tiny -p 'stage-graph{policy=fp32}' | filecheck %s --check-prefix GRAPH
// RUN: stepwell-opt %s --target tiny -p 'stage-graph{policy=fp32},stage-tile' | filecheck %s --check-prefix TILE
// RUN: stepwell-opt %s --target tiny -p 'stage-graph{policy=fp32},stage-tile,stage-npu' | filecheck %s --check-prefix NPU

// GRAPH:      func.func @main
// GRAPH-NEXT:   graph.launch @k0(%x, %y, %z)
// GRAPH-NEXT:   func.return
// GRAPH:      func.func private @k0
// GRAPH-NEXT:   graph.matmul
// GRAPH-NEXT:   graph.relu
// GRAPH-NEXT:   graph.add
// GRAPH-NEXT:   func.return

// TILE:      graph.launch @k0(%x, %y, %z)
// TILE:      tile.kernel @k0
// TILE:        tile.load {{.*}}, %1{{.*}} extents ["50", "20"]
// TILE-NEXT:   tile.alloc : !tile.buffer<37x64xf16, l1>
// TILE-NEXT:   tile.load {{.*}}, %0{{.*}} extents ["37", "50"]
// TILE:        tile.for {{.*}} = 0 to "50" step 32 {
// TILE:          tile.feed_a
// TILE-NEXT:     tile.feed_b
// TILE-NEXT:     tile.mma {{.*}} fields {init = "clamp(1 - i0, 1)"}
// TILE-NEXT:   }
// TILE:        tile.drain {{.*}} fields {act = "relu"}
// TILE:        tile.map {{.*}} fields {fn = "add"}
// TILE-NEXT:   tile.store

// NPU:      npu.kernel @k0(gm, gm, gm, gm)
// NPU:        npu.load dst=r28 space=l1
// NPU-NEXT:   npu.load {{.*}} space=l1
// NPU-NEXT:   npu.set src=load dst=feed
// NPU:        npu.wait src=load dst=feed
// NPU-NEXT:   npu.loop count=50 step=32 ring=1 {
// NPU:          npu.feed_a
// NPU-NEXT:     npu.feed_b
// NPU-NEXT:     npu.set src=feed dst=cube
// NPU-NEXT:     npu.wait src=feed dst=cube
// NPU-NEXT:     npu.mma
// NPU:        npu.wait src=cube dst=drain
// NPU-NEXT:   npu.drain {{.*}} act=relu
// NPU:        npu.wait src=drain dst=vector
// NPU-NEXT:   npu.vmap fn=add
// NPU:        npu.wait src=vector dst=store
// NPU-NEXT:   npu.store
// NPU:        npu.wait src=store dst=vector

builtin.module {
  func.func @main(%x: tensor<37x50xf16>, %y: tensor<50x20xf16>, %z: tensor<20xf16>) -> tensor<37x20xf16> {
    %0 = graph.matmul %x, %y : (tensor<37x50xf16>, tensor<50x20xf16>) -> tensor<37x20xf16>
    %1 = graph.relu %0 : (tensor<37x20xf16>) -> tensor<37x20xf16>
    %2 = graph.add %1, %z : (tensor<37x20xf16>, tensor<20xf16>) -> tensor<37x20xf16>
    func.return %2 : tensor<37x20xf16>
  }
}
