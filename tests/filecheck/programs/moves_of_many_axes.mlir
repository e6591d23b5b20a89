// Moves that walk more axes in UB than an instruction: depth to space, repeated pixels; steps of two and of minus one along the last axis; columns of pixels.

// RUN-LEVELS: seed=14; precision=fp32,fp16

builtin.module {
  func.func @main(%x: tensor<2x2x2x6x7x9xf32>, %y: tensor<3x1x14x1x11x1xf32>, %z: tensor<5x301xf32>, %p: tensor<1x3x40x41xf32>, %b: tensor<7x3x5xi8>) -> (tensor<2x6x7x2x9x2xf32>, tensor<3x1x14x2x11x2xf32>, tensor<5x101xf32>, tensor<5x301xf32>, tensor<1x40x41x3xf32>, tensor<5x3x7xi8>) {
    %0 = graph.transpose %x {perm = [0, 3, 4, 1, 5, 2]} : (tensor<2x2x2x6x7x9xf32>) -> tensor<2x6x7x2x9x2xf32>
    %1 = graph.expand %y {shape = [3, 1, 14, 2, 11, 2]} : (tensor<3x1x14x1x11x1xf32>) -> tensor<3x1x14x2x11x2xf32>
    %2 = graph.slice %z {starts = [0, 0], sizes = [5, 101], steps = [1, 3]} : (tensor<5x301xf32>) -> tensor<5x101xf32>
    %3 = graph.slice %z {starts = [4, 300], sizes = [5, 301], steps = [-1, -1]} : (tensor<5x301xf32>) -> tensor<5x301xf32>
    %4 = graph.transpose %p {perm = [0, 2, 3, 1]} : (tensor<1x3x40x41xf32>) -> tensor<1x40x41x3xf32>
    %5 = graph.transpose %b {perm = [2, 1, 0]} : (tensor<7x3x5xi8>) -> tensor<5x3x7xi8>
    func.return %0, %1, %2, %3, %4, %5 : tensor<2x6x7x2x9x2xf32>, tensor<3x1x14x2x11x2xf32>, tensor<5x101xf32>, tensor<5x301xf32>, tensor<1x40x41x3xf32>, tensor<5x3x7xi8>
  }
}
