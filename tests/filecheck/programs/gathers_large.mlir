// Gathers whose rows are longer than UB of the small target, and with more rows than it holds.

// RUN-LEVELS: seed=8

builtin.module {
  func.func @main(%t: tensor<10x20011xf32>, %i: tensor<3xi32>, %s: tensor<30x7xi8>, %j: tensor<5000xi32>, %n: tensor<i32>) -> (tensor<3x20011xf32>, tensor<5000x7xi8>, tensor<7xi8>) {
    %0 = graph.gather %t, %i {axis = 0} : (tensor<10x20011xf32>, tensor<3xi32>) -> tensor<3x20011xf32>
    %1 = graph.gather %s, %j {axis = 0} : (tensor<30x7xi8>, tensor<5000xi32>) -> tensor<5000x7xi8>
    %2 = graph.gather %s, %n {axis = 0} : (tensor<30x7xi8>, tensor<i32>) -> tensor<7xi8>
    func.return %0, %1, %2 : tensor<3x20011xf32>, tensor<5000x7xi8>, tensor<7xi8>
  }
}
