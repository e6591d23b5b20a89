// Convolutions by group over wide rows: panels are cut by columns.

// RUN-LEVELS: seed=64; precision=fp16,fp32; tolerance=3

builtin.module {
  func.func @main(%x0: tensor<1x96x5x170xf32>, %x1: tensor<2x144x4x201xf32>) -> (tensor<1x36x5x170xf32>, tensor<2x60x4x100xf32>) {
    %w0 = graph.weight "5eed000000000001" : tensor<36x48x3x3xf32>
    %b0 = graph.weight "5eed000000000002" : tensor<36xf32>
    %y0 = graph.conv %x0, %w0, %b0 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 2} : (tensor<1x96x5x170xf32>, tensor<36x48x3x3xf32>, tensor<36xf32>) -> tensor<1x36x5x170xf32>
    %w1 = graph.weight "5eed000000000003" : tensor<60x48x3x2xf32>
    %b1 = graph.weight "5eed000000000004" : tensor<60xf32>
    %y1 = graph.conv %x1, %w1, %b1 {kernel = [3, 2], strides = [1, 2], pads = [2, 0, 0, 1], dilations = [1, 3], groups = 3} : (tensor<2x144x4x201xf32>, tensor<60x48x3x2xf32>, tensor<60xf32>) -> tensor<2x60x4x100xf32>
    func.return %y0, %y1 : tensor<1x36x5x170xf32>, tensor<2x60x4x100xf32>
  }
}
