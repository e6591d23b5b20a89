// Bit by bit on bytes and words; bounds of a clip that a byte does not reach.

// RUN-LEVELS: seed=63; precision=fp32

func.func @main(%a: tensor<3x37xi8>, %b: tensor<37xi8>, %u: tensor<50xui8>, %v: tensor<50xui8>, %w: tensor<70xi32>, %z: tensor<1xi32>) -> (tensor<3x37xi8>, tensor<3x37xi8>, tensor<50xui8>, tensor<50xui8>, tensor<70xi32>, tensor<70xi32>, tensor<3x37xi8>, tensor<50xui8>) {
  %0 = graph.and %a, %b : (tensor<3x37xi8>, tensor<37xi8>) -> tensor<3x37xi8>
  %1 = graph.xor %a, %b : (tensor<3x37xi8>, tensor<37xi8>) -> tensor<3x37xi8>
  %2 = graph.or %u, %v : (tensor<50xui8>, tensor<50xui8>) -> tensor<50xui8>
  %3 = graph.xor %u, %v : (tensor<50xui8>, tensor<50xui8>) -> tensor<50xui8>
  %4 = graph.and %w, %z : (tensor<70xi32>, tensor<1xi32>) -> tensor<70xi32>
  %5 = graph.or %w, %z : (tensor<70xi32>, tensor<1xi32>) -> tensor<70xi32>
  %6 = graph.clip %a {lo = -3.0} : (tensor<3x37xi8>) -> tensor<3x37xi8>
  %7 = graph.clip %u {hi = 7.0} : (tensor<50xui8>) -> tensor<50xui8>
  func.return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<3x37xi8>, tensor<3x37xi8>, tensor<50xui8>, tensor<50xui8>, tensor<70xi32>, tensor<70xi32>, tensor<3x37xi8>, tensor<50xui8>
}
