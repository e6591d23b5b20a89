// Products with weights of packed integers: kinds, blocks that tiles cut, zero points, tails of every extent.

// RUN-LEVELS: seed=3; precision=fp32,fp16,bf16
func.func @main(%x: tensor<1x100xf32>, %y: tensor<7x129xf32>, %u: tensor<2x5x64xf32>, %v: tensor<33x40xf32>)
    -> (tensor<1x40xf32>, tensor<7x33xf32>, tensor<2x5x70xf32>, tensor<33x17xf32>, tensor<40x33xf32>) {
  %w0 = graph.weight "5eed0000000000000000000000000000" : tensor<40x50xui8>
  %s0 = graph.weight "5eed0000000000000000000000000001" : tensor<40x4xf32>
  %z0 = graph.weight "5eed0000000000000000000000000002" : tensor<40x4xui8>
  %b0 = graph.weight "5eed0000000000000000000000000003" : tensor<40xf32>
  %0 = graph.packed_matmul %x, %w0, %s0, %z0, %b0 {kind = "u4", block = 32, zeros = true} : (tensor<1x100xf32>, tensor<40x50xui8>, tensor<40x4xf32>, tensor<40x4xui8>, tensor<40xf32>) -> tensor<1x40xf32>
  %w1 = graph.weight "5eed0000000000000000000000000004" : tensor<33x65xui8>
  %s1 = graph.weight "5eed0000000000000000000000000005" : tensor<33x9xf32>
  %1 = graph.packed_matmul %y, %w1, %s1 {kind = "i4", block = 16} : (tensor<7x129xf32>, tensor<33x65xui8>, tensor<33x9xf32>) -> tensor<7x33xf32>
  %2 = graph.relu %1 : (tensor<7x33xf32>) -> tensor<7x33xf32>
  %w3 = graph.weight "5eed0000000000000000000000000006" : tensor<70x64xui8>
  %s3 = graph.weight "5eed0000000000000000000000000007" : tensor<70x1xf32>
  %z3 = graph.weight "5eed0000000000000000000000000008" : tensor<70x1xi8>
  %b3 = graph.weight "5eed0000000000000000000000000009" : tensor<70xf32>
  %3 = graph.packed_matmul %u, %w3, %s3, %z3, %b3 {kind = "i8", block = 64, zeros = true} : (tensor<2x5x64xf32>, tensor<70x64xui8>, tensor<70x1xf32>, tensor<70x1xi8>, tensor<70xf32>) -> tensor<2x5x70xf32>
  %4 = graph.abs %3 : (tensor<2x5x70xf32>) -> tensor<2x5x70xf32>
  %w5 = graph.weight "5eed000000000000000000000000000a" : tensor<17x40xui8>
  %s5 = graph.weight "5eed000000000000000000000000000b" : tensor<17x2xf32>
  %5 = graph.packed_matmul %v, %w5, %s5 {kind = "u8", block = 24} : (tensor<33x40xf32>, tensor<17x40xui8>, tensor<17x2xf32>) -> tensor<33x17xf32>
  %t = graph.transpose %v {perm = [1, 0]} : (tensor<33x40xf32>) -> tensor<40x33xf32>
  %w6 = graph.weight "5eed000000000000000000000000000c" : tensor<33x17xui8>
  %s6 = graph.weight "5eed000000000000000000000000000d" : tensor<33x1xf32>
  %6 = graph.packed_matmul %t, %w6, %s6 {kind = "i4", block = 4096} : (tensor<40x33xf32>, tensor<33x17xui8>, tensor<33x1xf32>) -> tensor<40x33xf32>
  func.return %0, %2, %4, %5, %6 : tensor<1x40xf32>, tensor<7x33xf32>, tensor<2x5x70xf32>, tensor<33x17xf32>, tensor<40x33xf32>
}
