// A chain of elementwise ops: one load for each operand, one store, nothing between in global memory; under fp16 the
// casts at the border join the kernel.

// RUN-LEVELS: seed=92; precision=fp16,fp32; tolerance=2
// RUN: stepwell-opt %s --target tiny -p stage-graph,stage-tile | filecheck %s --check-prefix TILE
// RUN: stepwell-opt %s --target tiny -p stage-graph,stage-tile,stage-npu | filecheck %s --check-prefix NPU

// TILE:         tile.kernel @k0
// TILE-COUNT-2: tile.load
// TILE-NOT:     tile.load
// TILE:         tile.map {{.*}} fields {fn = "add"}
// TILE:         tile.map {{.*}} fields {fn = "tanh"}
// TILE:         tile.map {{.*}} fields {fn = "mul"}
// TILE:         tile.store
// TILE-NOT:     tile.store

// NPU:         npu.kernel @k0(gm, gm, gm)
// NPU-COUNT-2: npu.load
// NPU:         npu.vmap fn=mul
// NPU:         npu.store

builtin.module {
  func.func @main(%x: tensor<64x100xf32>, %y: tensor<64x100xf32>) -> tensor<64x100xf32> {
    %0 = graph.add %x, %y : (tensor<64x100xf32>, tensor<64x100xf32>) -> tensor<64x100xf32>
    %1 = graph.tanh %0 : (tensor<64x100xf32>) -> tensor<64x100xf32>
    %2 = graph.mul %1, %y : (tensor<64x100xf32>, tensor<64x100xf32>) -> tensor<64x100xf32>
    func.return %2 : tensor<64x100xf32>
  }
}
