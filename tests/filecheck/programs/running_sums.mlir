// Running sums along the last and a middle axis, from the end, without the element itself, of integers.

// RUN-LEVELS: seed=13; precision=fp32,fp16; tolerance=2

builtin.module {
  func.func @main(%x: tensor<3x37xf32>, %y: tensor<2x9x5xi32>) -> (tensor<3x37xf32>, tensor<3x37xf32>, tensor<2x9x5xi32>) {
    %0 = graph.cumsum %x {axis = 1} : (tensor<3x37xf32>) -> tensor<3x37xf32>
    %1 = graph.cumsum %x {axis = 1, exclusive = true, reverse = true} : (tensor<3x37xf32>) -> tensor<3x37xf32>
    %2 = graph.cumsum %y {axis = 1, reverse = true} : (tensor<2x9x5xi32>) -> tensor<2x9x5xi32>
    func.return %0, %1, %2 : tensor<3x37xf32>, tensor<3x37xf32>, tensor<2x9x5xi32>
  }
}
