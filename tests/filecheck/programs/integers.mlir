// Integer arithmetic is exact, modulo 2^n; by zero gives 0.

// RUN-LEVELS: seed=3

builtin.module {
  func.func @main(%x: tensor<6x11xi32>, %y: tensor<6x11xi32>, %u: tensor<66xui8>, %v: tensor<66xui8>, %i: tensor<66xi8>, %j: tensor<66xi8>) -> (tensor<6x11xi32>, tensor<6x11xi32>, tensor<6x11xi32>, tensor<6x11xi32>, tensor<6x11xi32>, tensor<6x11xi32>, tensor<6x11xi32>, tensor<6x11xi32>, tensor<66xui8>, tensor<66xui8>, tensor<66xui8>, tensor<66xui8>, tensor<66xi8>, tensor<66xi8>, tensor<66xi8>, tensor<66xi8>, tensor<66xi8>, tensor<6x11xi32>) {
    %0 = graph.add %x, %y : (tensor<6x11xi32>, tensor<6x11xi32>) -> tensor<6x11xi32>
    %1 = graph.sub %x, %y : (tensor<6x11xi32>, tensor<6x11xi32>) -> tensor<6x11xi32>
    %2 = graph.mul %x, %y : (tensor<6x11xi32>, tensor<6x11xi32>) -> tensor<6x11xi32>
    %3 = graph.div %x, %y : (tensor<6x11xi32>, tensor<6x11xi32>) -> tensor<6x11xi32>
    %4 = graph.mod %x, %y : (tensor<6x11xi32>, tensor<6x11xi32>) -> tensor<6x11xi32>
    %5 = graph.fmod %x, %y : (tensor<6x11xi32>, tensor<6x11xi32>) -> tensor<6x11xi32>
    %6 = graph.max %x, %y : (tensor<6x11xi32>, tensor<6x11xi32>) -> tensor<6x11xi32>
    %7 = graph.min %x, %y : (tensor<6x11xi32>, tensor<6x11xi32>) -> tensor<6x11xi32>
    %8 = graph.add %u, %v : (tensor<66xui8>, tensor<66xui8>) -> tensor<66xui8>
    %9 = graph.sub %u, %v : (tensor<66xui8>, tensor<66xui8>) -> tensor<66xui8>
    %10 = graph.div %u, %v : (tensor<66xui8>, tensor<66xui8>) -> tensor<66xui8>
    %11 = graph.mod %u, %v : (tensor<66xui8>, tensor<66xui8>) -> tensor<66xui8>
    %12 = graph.mul %i, %j : (tensor<66xi8>, tensor<66xi8>) -> tensor<66xi8>
    %13 = graph.div %i, %j : (tensor<66xi8>, tensor<66xi8>) -> tensor<66xi8>
    %14 = graph.fmod %i, %j : (tensor<66xi8>, tensor<66xi8>) -> tensor<66xi8>
    %15 = graph.min %i, %j : (tensor<66xi8>, tensor<66xi8>) -> tensor<66xi8>
    %16 = graph.neg %i : (tensor<66xi8>) -> tensor<66xi8>
    %17 = graph.abs %x : (tensor<6x11xi32>) -> tensor<6x11xi32>
    func.return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17 : tensor<6x11xi32>, tensor<6x11xi32>, tensor<6x11xi32>, tensor<6x11xi32>, tensor<6x11xi32>, tensor<6x11xi32>, tensor<6x11xi32>, tensor<6x11xi32>, tensor<66xui8>, tensor<66xui8>, tensor<66xui8>, tensor<66xui8>, tensor<66xi8>, tensor<66xi8>, tensor<66xi8>, tensor<66xi8>, tensor<66xi8>, tensor<6x11xi32>
  }
}
