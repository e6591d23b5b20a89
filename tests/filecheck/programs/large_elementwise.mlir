// More elements than fit on chip: tiles, tails and both cores.

// RUN-LEVELS: seed=79; precision=fp16,fp32

builtin.module {
  func.func @main(%x: tensor<301x257xf32>, %y: tensor<301x257xf32>) -> tensor<301x257xf32> {
    %0 = graph.add %x, %y : (tensor<301x257xf32>, tensor<301x257xf32>) -> tensor<301x257xf32>
    %1 = graph.mul %0, %y : (tensor<301x257xf32>, tensor<301x257xf32>) -> tensor<301x257xf32>
    func.return %1 : tensor<301x257xf32>
  }
}
