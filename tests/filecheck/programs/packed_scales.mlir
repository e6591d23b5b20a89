// Scales of two bytes: what an integer stands for is rounded to their type, then to that of the left operand.

// RUN-LEVELS: seed=5; precision=fp16,bf16; tolerance=8
func.func @main(%x: tensor<7x129xf32>, %y: tensor<33x40xf32>) -> (tensor<7x33xf32>, tensor<33x17xf32>) {
  %w0 = graph.weight "5eed0000000000000000000000000000" : tensor<33x65xui8>
  %s0 = graph.weight "5eed0000000000000000000000000001" : tensor<33x9xf16>
  %0 = graph.packed_matmul %x, %w0, %s0 {kind = "i4", block = 16} : (tensor<7x129xf32>, tensor<33x65xui8>, tensor<33x9xf16>) -> tensor<7x33xf32>
  %w1 = graph.weight "5eed0000000000000000000000000002" : tensor<17x40xui8>
  %s1 = graph.weight "5eed0000000000000000000000000003" : tensor<17x2xbf16>
  %z1 = graph.weight "5eed0000000000000000000000000004" : tensor<17x2xui8>
  %1 = graph.packed_matmul %y, %w1, %s1, %z1 {kind = "u8", block = 24, zeros = true} : (tensor<33x40xf32>, tensor<17x40xui8>, tensor<17x2xbf16>, tensor<17x2xui8>) -> tensor<33x17xf32>
  func.return %0, %1 : tensor<7x33xf32>, tensor<33x17xf32>
}
