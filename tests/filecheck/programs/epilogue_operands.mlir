// What an epilogue reads: a number a row, a vector a channel, a mask for all batches.

// RUN-LEVELS: seed=106; precision=fp16,fp32; tolerance=8

builtin.module {
  func.func @main(%x: tensor<3x20x16xf32>, %w: tensor<3x16x20xf32>, %m: tensor<20x20xf32>, %s: tensor<3x1x20xf32>, %r: tensor<3x20x1xf32>, %z: tensor<2x6x7x8xf32>, %k: tensor<1x6x1x1xf32>) -> (tensor<3x20x20xf32>, tensor<2x6x7x8xf32>) {
    %0 = graph.matmul %x, %w : (tensor<3x20x16xf32>, tensor<3x16x20xf32>) -> tensor<3x20x20xf32>
    %1 = graph.add %0, %m : (tensor<3x20x20xf32>, tensor<20x20xf32>) -> tensor<3x20x20xf32>
    %2 = graph.add %1, %s : (tensor<3x20x20xf32>, tensor<3x1x20xf32>) -> tensor<3x20x20xf32>
    %3 = graph.mul %2, %r : (tensor<3x20x20xf32>, tensor<3x20x1xf32>) -> tensor<3x20x20xf32>
    %4 = graph.weight "5eed000000000001" : tensor<6x6x3x3xf32>
    %5 = graph.weight "5eed000000000002" : tensor<6xf32>
    %6 = graph.conv %z, %4, %5 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<2x6x7x8xf32>, tensor<6x6x3x3xf32>, tensor<6xf32>) -> tensor<2x6x7x8xf32>
    %7 = graph.mul %6, %k : (tensor<2x6x7x8xf32>, tensor<1x6x1x1xf32>) -> tensor<2x6x7x8xf32>
    %8 = graph.add %7, %z : (tensor<2x6x7x8xf32>, tensor<2x6x7x8xf32>) -> tensor<2x6x7x8xf32>
    func.return %3, %8 : tensor<3x20x20xf32>, tensor<2x6x7x8xf32>
  }
}
