// A value as a result, and reshaped as another.

// RUN-LEVELS: fails=an output is written by a kernel

builtin.module {
  func.func @main(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<24xf32>) {
    %0 = graph.relu %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %1 = graph.reshape %0 {shape = [24]} : (tensor<4x6xf32>) -> tensor<24xf32>
    func.return %0, %1 : tensor<4x6xf32>, tensor<24xf32>
  }
}
