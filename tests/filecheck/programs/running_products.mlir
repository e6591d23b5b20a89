// Running products: of floats and integers, without the element itself, from the end on.

// RUN-LEVELS: seed=133; precision=fp16,fp32; tolerance=20; %x=uniform(0.8, 1.25); %n=uniform(-2, 3)

builtin.module {
  func.func @main(%x: tensor<3x40xf32>, %n: tensor<5x9xi32>) -> (tensor<3x40xf32>, tensor<3x40xf32>, tensor<5x9xi32>) {
    %0 = graph.cumprod %x {axis = 1} : (tensor<3x40xf32>) -> tensor<3x40xf32>
    %1 = graph.cumprod %x {axis = 0, exclusive = true, reverse = true} : (tensor<3x40xf32>) -> tensor<3x40xf32>
    %2 = graph.cumprod %n {axis = 1, exclusive = true} : (tensor<5x9xi32>) -> tensor<5x9xi32>
    func.return %0, %1, %2 : tensor<3x40xf32>, tensor<3x40xf32>, tensor<5x9xi32>
  }
}
