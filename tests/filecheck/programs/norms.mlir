// Normalisation of batches, instances and groups.

// RUN-LEVELS: seed=16; precision=fp32,fp16; tolerance=4; %v=uniform(0.5, 2)

builtin.module {
  func.func @main(%x: tensor<2x6x5x7xf32>, %g: tensor<6xf32>, %b: tensor<6xf32>, %m: tensor<6xf32>, %v: tensor<6xf32>) -> (tensor<2x6x5x7xf32>, tensor<2x6x5x7xf32>, tensor<2x6x5x7xf32>) {
    %0 = graph.batch_norm %x, %g, %b, %m, %v {epsilon = 1.0e-05} : (tensor<2x6x5x7xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x6x5x7xf32>
    %1 = graph.instance_norm %x, %g, %b {epsilon = 1.0e-05} : (tensor<2x6x5x7xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x6x5x7xf32>
    %2 = graph.group_norm %x, %g, %b {groups = 3, epsilon = 1.0e-05} : (tensor<2x6x5x7xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x6x5x7xf32>
    func.return %0, %1, %2 : tensor<2x6x5x7xf32>, tensor<2x6x5x7xf32>, tensor<2x6x5x7xf32>
  }
}
