// Rows of which L1 of the smallest target does not hold the panel of one: it is cut by columns, by channels, or by both.

// RUN-LEVELS: seed=62; precision=fp16,fp32; tolerance=3

builtin.module {
  func.func @main(%x0: tensor<1x96x5x190xf32>, %x1: tensor<1x70x7x411xf32>, %x2: tensor<1x520x3x40xf32>, %x3: tensor<2x50x5x260xf32>) -> (tensor<1x20x5x190xf32>, tensor<1x17x5x136xf32>, tensor<1x24x2x40xf32>, tensor<2x9x5x260xf32>) {
    %w0 = graph.weight "5eed000000000001" : tensor<20x96x3x3xf32>
    %b0 = graph.weight "5eed000000000002" : tensor<20xf32>
    %y0 = graph.conv %x0, %w0, %b0 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<1x96x5x190xf32>, tensor<20x96x3x3xf32>, tensor<20xf32>) -> tensor<1x20x5x190xf32>
    %w1 = graph.weight "5eed000000000003" : tensor<17x70x2x5xf32>
    %b1 = graph.weight "5eed000000000004" : tensor<17xf32>
    %y1 = graph.conv %x1, %w1, %b1 {kernel = [2, 5], strides = [1, 3], pads = [0, 3, 1, 1], dilations = [3, 2], groups = 1} : (tensor<1x70x7x411xf32>, tensor<17x70x2x5xf32>, tensor<17xf32>) -> tensor<1x17x5x136xf32>
    %w2 = graph.weight "5eed000000000005" : tensor<24x520x3x3xf32>
    %b2 = graph.weight "5eed000000000006" : tensor<24xf32>
    %y2 = graph.conv %x2, %w2, %b2 {kernel = [3, 3], strides = [2, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<1x520x3x40xf32>, tensor<24x520x3x3xf32>, tensor<24xf32>) -> tensor<1x24x2x40xf32>
    %w3 = graph.weight "5eed000000000007" : tensor<9x50x5x3xf32>
    %b3 = graph.weight "5eed000000000008" : tensor<9xf32>
    %y3 = graph.conv %x3, %w3, %b3 {kernel = [5, 3], strides = [1, 1], pads = [4, 2, 0, 0], dilations = [1, 1], groups = 1} : (tensor<2x50x5x260xf32>, tensor<9x50x5x3xf32>, tensor<9xf32>) -> tensor<2x9x5x260xf32>
    func.return %y0, %y1, %y2, %y3 : tensor<1x20x5x190xf32>, tensor<1x17x5x136xf32>, tensor<1x24x2x40xf32>, tensor<2x9x5x260xf32>
  }
}
