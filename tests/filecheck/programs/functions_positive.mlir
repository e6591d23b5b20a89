// Roots, logarithms, reciprocals and powers.

// RUN-LEVELS: seed=7; %x=uniform(0.05, 9); %y=uniform(-2, 2); tolerance=2; precision=fp32,fp16

builtin.module {
  func.func @main(%x: tensor<21x6xf32>, %y: tensor<21x6xf32>) -> (tensor<21x6xf32>, tensor<21x6xf32>, tensor<21x6xf32>, tensor<21x6xf32>, tensor<21x6xf32>, tensor<21x6xf32>, tensor<21x6xf32>, tensor<21x6xf32>) {
    %0 = graph.constant dense<2.000000e+00> : tensor<f32>
    %1 = graph.sqrt %x : (tensor<21x6xf32>) -> tensor<21x6xf32>
    %2 = graph.rsqrt %x : (tensor<21x6xf32>) -> tensor<21x6xf32>
    %3 = graph.log %x : (tensor<21x6xf32>) -> tensor<21x6xf32>
    %4 = graph.reciprocal %x : (tensor<21x6xf32>) -> tensor<21x6xf32>
    %5 = graph.pow %x, %y : (tensor<21x6xf32>, tensor<21x6xf32>) -> tensor<21x6xf32>
    %6 = graph.pow %x, %0 : (tensor<21x6xf32>, tensor<f32>) -> tensor<21x6xf32>
    %7 = graph.mod %y, %x : (tensor<21x6xf32>, tensor<21x6xf32>) -> tensor<21x6xf32>
    %8 = graph.fmod %y, %x : (tensor<21x6xf32>, tensor<21x6xf32>) -> tensor<21x6xf32>
    func.return %1, %2, %3, %4, %5, %6, %7, %8 : tensor<21x6xf32>, tensor<21x6xf32>, tensor<21x6xf32>, tensor<21x6xf32>, tensor<21x6xf32>, tensor<21x6xf32>, tensor<21x6xf32>, tensor<21x6xf32>
  }
}
