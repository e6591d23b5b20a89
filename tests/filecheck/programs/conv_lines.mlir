// Long lines: rows are what panels are cut by, so a line stands upright; a padded kernel of three rows cannot.

// RUN-LEVELS: seed=61; precision=fp16,fp32; tolerance=3

builtin.module {
  func.func @main(%x0: tensor<1x3x2501xf32>, %x1: tensor<2x520x150xf32>, %x2: tensor<1x40x1200xf32>, %x3: tensor<1x48x700xf32>, %x4: tensor<1x160x1x90xf32>) -> (tensor<1x10x834xf32>, tensor<2x24x146xf32>, tensor<1x40x600xf32>, tensor<1x36x696xf32>, tensor<1x20x1x90xf32>) {
    %w0 = graph.weight "5eed000000000001" : tensor<10x3x25xf32>
    %b0 = graph.weight "5eed000000000002" : tensor<10xf32>
    %y0 = graph.conv %x0, %w0, %b0 {kernel = [25], strides = [3], pads = [12, 12], dilations = [1], groups = 1} : (tensor<1x3x2501xf32>, tensor<10x3x25xf32>, tensor<10xf32>) -> tensor<1x10x834xf32>
    %w1 = graph.weight "5eed000000000003" : tensor<24x520x5xf32>
    %b1 = graph.weight "5eed000000000004" : tensor<24xf32>
    %y1 = graph.conv %x1, %w1, %b1 {kernel = [5], strides = [1], pads = [4, 0], dilations = [2], groups = 1} : (tensor<2x520x150xf32>, tensor<24x520x5xf32>, tensor<24xf32>) -> tensor<2x24x146xf32>
    %w2 = graph.weight "5eed000000000005" : tensor<40x1x9xf32>
    %b2 = graph.weight "5eed000000000006" : tensor<40xf32>
    %y2 = graph.conv %x2, %w2, %b2 {kernel = [9], strides = [2], pads = [3, 5], dilations = [1], groups = 40} : (tensor<1x40x1200xf32>, tensor<40x1x9xf32>, tensor<40xf32>) -> tensor<1x40x600xf32>
    %w3 = graph.weight "5eed000000000007" : tensor<36x16x3xf32>
    %b3 = graph.weight "5eed000000000008" : tensor<36xf32>
    %y3 = graph.conv %x3, %w3, %b3 {kernel = [3], strides = [1], pads = [1, 1], dilations = [3], groups = 3} : (tensor<1x48x700xf32>, tensor<36x16x3xf32>, tensor<36xf32>) -> tensor<1x36x696xf32>
    %w4 = graph.weight "5eed000000000009" : tensor<20x160x3x3xf32>
    %b4 = graph.weight "5eed000000000010" : tensor<20xf32>
    %y4 = graph.conv %x4, %w4, %b4 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : (tensor<1x160x1x90xf32>, tensor<20x160x3x3xf32>, tensor<20xf32>) -> tensor<1x20x1x90xf32>
    func.return %y0, %y1, %y2, %y3, %y4 : tensor<1x10x834xf32>, tensor<2x24x146xf32>, tensor<1x40x600xf32>, tensor<1x36x696xf32>, tensor<1x20x1x90xf32>
  }
}
