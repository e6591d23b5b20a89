// A concatenation of more parts than there are token ids.

// RUN-LEVELS: fails=at most 8 token ids

builtin.module {
  func.func @main(%x: tensor<3x1x5xf32>) -> tensor<3x9x5xf32> {
    %0 = graph.concat %x, %x, %x, %x, %x, %x, %x, %x, %x {axis = 1} : (tensor<3x1x5xf32>, tensor<3x1x5xf32>, tensor<3x1x5xf32>, tensor<3x1x5xf32>, tensor<3x1x5xf32>, tensor<3x1x5xf32>, tensor<3x1x5xf32>, tensor<3x1x5xf32>, tensor<3x1x5xf32>) -> tensor<3x9x5xf32>
    func.return %0 : tensor<3x9x5xf32>
  }
}
