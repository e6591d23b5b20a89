// Equal layers share one kernel; their weights are arguments.

// RUN-LEVELS: seed=78; precision=fp16,fp32; tolerance=8

builtin.module {
  func.func @main(%x: tensor<16x24xf32>) -> tensor<16x24xf32> {
    %0 = graph.weight "5eed000000000001" : tensor<24x24xf32>
    %1 = graph.weight "5eed000000000002" : tensor<24xf32>
    %2 = graph.matmul %x, %0, %1 : (tensor<16x24xf32>, tensor<24x24xf32>, tensor<24xf32>) -> tensor<16x24xf32>
    %3 = graph.relu %2 : (tensor<16x24xf32>) -> tensor<16x24xf32>
    %4 = graph.softmax %3 {axes = [1]} : (tensor<16x24xf32>) -> tensor<16x24xf32>
    %5 = graph.weight "5eed000000000003" : tensor<24x24xf32>
    %6 = graph.weight "5eed000000000004" : tensor<24xf32>
    %7 = graph.matmul %4, %5, %6 : (tensor<16x24xf32>, tensor<24x24xf32>, tensor<24xf32>) -> tensor<16x24xf32>
    %8 = graph.relu %7 : (tensor<16x24xf32>) -> tensor<16x24xf32>
    %9 = graph.softmax %8 {axes = [1]} : (tensor<16x24xf32>) -> tensor<16x24xf32>
    %10 = graph.weight "5eed000000000005" : tensor<24x24xf32>
    %11 = graph.weight "5eed000000000006" : tensor<24xf32>
    %12 = graph.matmul %9, %10, %11 : (tensor<16x24xf32>, tensor<24x24xf32>, tensor<24xf32>) -> tensor<16x24xf32>
    %13 = graph.relu %12 : (tensor<16x24xf32>) -> tensor<16x24xf32>
    %14 = graph.softmax %13 {axes = [1]} : (tensor<16x24xf32>) -> tensor<16x24xf32>
    %15 = graph.weight "5eed000000000007" : tensor<24x24xf32>
    %16 = graph.weight "5eed000000000008" : tensor<24xf32>
    %17 = graph.matmul %14, %15, %16 : (tensor<16x24xf32>, tensor<24x24xf32>, tensor<24xf32>) -> tensor<16x24xf32>
    %18 = graph.relu %17 : (tensor<16x24xf32>) -> tensor<16x24xf32>
    %19 = graph.softmax %18 {axes = [1]} : (tensor<16x24xf32>) -> tensor<16x24xf32>
    func.return %19 : tensor<16x24xf32>
  }
}
