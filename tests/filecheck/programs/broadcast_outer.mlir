// The outer sum of a column and a row: no operand has the shape of the result.

// RUN-LEVELS: seed=11; precision=fp32,fp16

builtin.module {
  func.func @main(%a: tensor<130x1xf32>, %b: tensor<1x257xf32>) -> tensor<130x257xf32> {
    %0 = graph.add %a, %b : (tensor<130x1xf32>, tensor<1x257xf32>) -> tensor<130x257xf32>
    %1 = graph.relu %0 : (tensor<130x257xf32>) -> tensor<130x257xf32>
    func.return %1 : tensor<130x257xf32>
  }
}
