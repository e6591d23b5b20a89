// Attention of two heads with scale, mask and projection.

// RUN-LEVELS: seed=73; precision=fp16,fp32; tolerance=4

builtin.module {
  func.func @main(%x: tensor<21x32xf32>, %mask: tensor<21x21xf32>) -> tensor<21x32xf32> {
    %0 = graph.weight "5eed000000000001" : tensor<32x32xf32>
    %1 = graph.weight "5eed000000000002" : tensor<32xf32>
    %2 = graph.matmul %x, %0, %1 : (tensor<21x32xf32>, tensor<32x32xf32>, tensor<32xf32>) -> tensor<21x32xf32>
    %3 = graph.weight "5eed000000000003" : tensor<32x32xf32>
    %4 = graph.weight "5eed000000000004" : tensor<32xf32>
    %5 = graph.matmul %x, %3, %4 : (tensor<21x32xf32>, tensor<32x32xf32>, tensor<32xf32>) -> tensor<21x32xf32>
    %6 = graph.weight "5eed000000000005" : tensor<32x32xf32>
    %7 = graph.weight "5eed000000000006" : tensor<32xf32>
    %8 = graph.matmul %x, %6, %7 : (tensor<21x32xf32>, tensor<32x32xf32>, tensor<32xf32>) -> tensor<21x32xf32>
    %9 = graph.reshape %2 {shape = [21, 2, 16]} : (tensor<21x32xf32>) -> tensor<21x2x16xf32>
    %10 = graph.transpose %9 {perm = [1, 0, 2]} : (tensor<21x2x16xf32>) -> tensor<2x21x16xf32>
    %11 = graph.reshape %5 {shape = [21, 2, 16]} : (tensor<21x32xf32>) -> tensor<21x2x16xf32>
    %12 = graph.transpose %11 {perm = [1, 0, 2]} : (tensor<21x2x16xf32>) -> tensor<2x21x16xf32>
    %13 = graph.reshape %8 {shape = [21, 2, 16]} : (tensor<21x32xf32>) -> tensor<21x2x16xf32>
    %14 = graph.transpose %13 {perm = [1, 0, 2]} : (tensor<21x2x16xf32>) -> tensor<2x21x16xf32>
    %15 = graph.matmul %10, %12 {trans_b = true} : (tensor<2x21x16xf32>, tensor<2x21x16xf32>) -> tensor<2x21x21xf32>
    %16 = graph.constant dense<2.500000e-01> : tensor<f32>
    %17 = graph.mul %15, %16 : (tensor<2x21x21xf32>, tensor<f32>) -> tensor<2x21x21xf32>
    %18 = graph.add %17, %mask : (tensor<2x21x21xf32>, tensor<21x21xf32>) -> tensor<2x21x21xf32>
    %19 = graph.softmax %18 {axes = [2]} : (tensor<2x21x21xf32>) -> tensor<2x21x21xf32>
    %20 = graph.matmul %19, %14 : (tensor<2x21x21xf32>, tensor<2x21x16xf32>) -> tensor<2x21x16xf32>
    %21 = graph.transpose %20 {perm = [1, 0, 2]} : (tensor<2x21x16xf32>) -> tensor<21x2x16xf32>
    %22 = graph.reshape %21 {shape = [21, 32]} : (tensor<21x2x16xf32>) -> tensor<21x32xf32>
    %23 = graph.weight "5eed000000000007" : tensor<32x32xf32>
    %24 = graph.weight "5eed000000000008" : tensor<32xf32>
    %25 = graph.matmul %22, %23, %24 : (tensor<21x32xf32>, tensor<32x32xf32>, tensor<32xf32>) -> tensor<21x32xf32>
    %26 = graph.add %25, %x : (tensor<21x32xf32>, tensor<21x32xf32>) -> tensor<21x32xf32>
    func.return %26 : tensor<21x32xf32>
  }
}
