// Concatenations of more parts than there are token ids: of rows that lie next to each other, and one after the other.

// RUN-LEVELS: seed=3

builtin.module {
  func.func @main(%x: tensor<3x1x5xf32>, %y: tensor<700xf32>) -> (tensor<3x9x5xf32>, tensor<8400xf32>) {
    %0 = graph.concat %x, %x, %x, %x, %x, %x, %x, %x, %x {axis = 1} : (tensor<3x1x5xf32>, tensor<3x1x5xf32>, tensor<3x1x5xf32>, tensor<3x1x5xf32>, tensor<3x1x5xf32>, tensor<3x1x5xf32>, tensor<3x1x5xf32>, tensor<3x1x5xf32>, tensor<3x1x5xf32>) -> tensor<3x9x5xf32>
    %1 = graph.concat %y, %y, %y, %y, %y, %y, %y, %y, %y, %y, %y, %y {axis = 0} : (tensor<700xf32>, tensor<700xf32>, tensor<700xf32>, tensor<700xf32>, tensor<700xf32>, tensor<700xf32>, tensor<700xf32>, tensor<700xf32>, tensor<700xf32>, tensor<700xf32>, tensor<700xf32>, tensor<700xf32>) -> tensor<8400xf32>
    func.return %0, %1 : tensor<3x9x5xf32>, tensor<8400xf32>
  }
}
