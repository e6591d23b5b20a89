// A transpose moves boxes: loaded as they lie, turned by the vector engine, stored as they shall lie.

// RUN-LEVELS: seed=93; precision=fp32,fp16
// RUN: stepwell-opt %s --target tiny -p 'stage-graph{policy=fp32},stage-tile' | filecheck %s --check-prefix TILE

// TILE:      tile.kernel @k0
// TILE:        tile.load {{.*}} extents ["clamp(100 - i0, 34)", "clamp(130 - i1, 44)"]
// TILE-NEXT:   tile.alloc
// TILE-NEXT:   tile.map {{.*}} extents ["clamp(130 - i0, 44)", "clamp(100 - i1, 34)"]
// TILE-NEXT:   tile.store

builtin.module {
  func.func @main(%x: tensor<100x130xf32>) -> tensor<130x100xf32> {
    %0 = graph.transpose %x {perm = [1, 0]} : (tensor<100x130xf32>) -> tensor<130x100xf32>
    func.return %0 : tensor<130x100xf32>
  }
}
