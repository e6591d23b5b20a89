// Samples at computed places, some of them beyond the border; the cubic one has more taps than a kernel has operands.

// RUN-LEVELS: seed=132; precision=fp16,fp32; tolerance=8; %g=uniform(-1.4, 1.4); %h=uniform(-1.2, 1.2)

builtin.module {
  func.func @main(%x: tensor<2x3x6x7xf32>, %g: tensor<2x5x4x2xf32>, %y: tensor<1x2x3x4x5xf32>, %h: tensor<1x2x3x2x3xf32>) -> (tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<1x2x2x3x2xf32>) {
    %0 = graph.grid_sample %x, %g {mode = "linear", padding = "zeros"} : (tensor<2x3x6x7xf32>, tensor<2x5x4x2xf32>) -> tensor<2x3x5x4xf32>
    %1 = graph.grid_sample %x, %g {mode = "linear", padding = "border", align_corners = true} : (tensor<2x3x6x7xf32>, tensor<2x5x4x2xf32>) -> tensor<2x3x5x4xf32>
    %2 = graph.grid_sample %x, %g {mode = "cubic", padding = "reflection"} : (tensor<2x3x6x7xf32>, tensor<2x5x4x2xf32>) -> tensor<2x3x5x4xf32>
    %3 = graph.grid_sample %y, %h {mode = "nearest", padding = "reflection"} : (tensor<1x2x3x4x5xf32>, tensor<1x2x3x2x3xf32>) -> tensor<1x2x2x3x2xf32>
    func.return %0, %1, %2, %3 : tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<1x2x2x3x2xf32>
  }
}
