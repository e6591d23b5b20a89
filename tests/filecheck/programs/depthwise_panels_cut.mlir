// Depthwise convolutions of wide rows: panels are cut by columns.

// RUN-LEVELS: seed=63; precision=fp16,fp32; tolerance=3

builtin.module {
  func.func @main(%x0: tensor<1x33x6x461xf32>, %x1: tensor<2x16x9x389xf32>, %x2: tensor<1x20x7x420xf32>) -> (tensor<1x33x6x461xf32>, tensor<2x16x5x195xf32>, tensor<1x20x7x419xf32>) {
    %w0 = graph.weight "5eed000000000001" : tensor<33x1x3x3xf32>
    %b0 = graph.weight "5eed000000000002" : tensor<33xf32>
    %y0 = graph.conv %x0, %w0, %b0 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 33} : (tensor<1x33x6x461xf32>, tensor<33x1x3x3xf32>, tensor<33xf32>) -> tensor<1x33x6x461xf32>
    %w1 = graph.weight "5eed000000000003" : tensor<16x1x5x5xf32>
    %b1 = graph.weight "5eed000000000004" : tensor<16xf32>
    %y1 = graph.conv %x1, %w1, %b1 {kernel = [5, 5], strides = [2, 2], pads = [2, 2, 2, 2], dilations = [1, 1], groups = 16} : (tensor<2x16x9x389xf32>, tensor<16x1x5x5xf32>, tensor<16xf32>) -> tensor<2x16x5x195xf32>
    %w2 = graph.weight "5eed000000000005" : tensor<20x1x3x3xf32>
    %b2 = graph.weight "5eed000000000006" : tensor<20xf32>
    %y2 = graph.conv %x2, %w2, %b2 {kernel = [3, 3], strides = [1, 1], pads = [0, 3, 4, 2], dilations = [2, 3], groups = 20} : (tensor<1x20x7x420xf32>, tensor<20x1x3x3xf32>, tensor<20xf32>) -> tensor<1x20x7x419xf32>
    func.return %y0, %y1, %y2 : tensor<1x33x6x461xf32>, tensor<2x16x5x195xf32>, tensor<1x20x7x419xf32>
  }
}
