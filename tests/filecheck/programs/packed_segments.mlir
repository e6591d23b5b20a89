// A product of two segments of k with a packed weight, whose panels do not fit `tiny`; and one of many rows.

// RUN-LEVELS: seed=4; precision=fp16; tolerance=2
func.func @main(%x: tensor<3x2500xf32>, %y: tensor<128x96xf32>) -> (tensor<3x37xf32>, tensor<128x50xf32>) {
  %w0 = graph.weight "5eed0000000000000000000000000000" : tensor<37x1250xui8>
  %s0 = graph.weight "5eed0000000000000000000000000001" : tensor<37x20xf16>
  %z0 = graph.weight "5eed0000000000000000000000000002" : tensor<37x20xi8>
  %0 = graph.packed_matmul %x, %w0, %s0, %z0 {kind = "i4", block = 128, zeros = true} : (tensor<3x2500xf32>, tensor<37x1250xui8>, tensor<37x20xf16>, tensor<37x20xi8>) -> tensor<3x37xf32>
  %w1 = graph.weight "5eed0000000000000000000000000003" : tensor<50x48xui8>
  %s1 = graph.weight "5eed0000000000000000000000000004" : tensor<50x6xf32>
  %1 = graph.packed_matmul %y, %w1, %s1 {kind = "u4", block = 16} : (tensor<128x96xf32>, tensor<50x48xui8>, tensor<50x6xf32>) -> tensor<128x50xf32>
  func.return %0, %1 : tensor<3x37xf32>, tensor<128x50xf32>
}
