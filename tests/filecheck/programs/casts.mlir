// Casts between all types: rounding, truncation, clamping, wrapping.

// RUN-LEVELS: seed=8; %x=special; %h=uniform(-300, 300); %i=uniform(-70000, 70000)

builtin.module {
  func.func @main(%x: tensor<48xf32>, %h: tensor<50xf16>, %i: tensor<49xi32>, %b: tensor<33xi1>, %u: tensor<35xui8>) -> (tensor<48xf16>, tensor<48xbf16>, tensor<48xi32>, tensor<48xi8>, tensor<48xui8>, tensor<48xi1>, tensor<50xf32>, tensor<50xbf16>, tensor<50xi8>, tensor<50xui8>, tensor<50xi32>, tensor<49xf32>, tensor<49xf16>, tensor<49xi8>, tensor<49xui8>, tensor<49xi1>, tensor<33xf32>, tensor<33xi32>, tensor<35xf16>, tensor<35xi8>, tensor<35xi32>) {
    %0 = graph.cast %x : (tensor<48xf32>) -> tensor<48xf16>
    %1 = graph.cast %x : (tensor<48xf32>) -> tensor<48xbf16>
    %2 = graph.cast %x : (tensor<48xf32>) -> tensor<48xi32>
    %3 = graph.cast %x : (tensor<48xf32>) -> tensor<48xi8>
    %4 = graph.cast %x : (tensor<48xf32>) -> tensor<48xui8>
    %5 = graph.cast %x : (tensor<48xf32>) -> tensor<48xi1>
    %6 = graph.cast %h : (tensor<50xf16>) -> tensor<50xf32>
    %7 = graph.cast %h : (tensor<50xf16>) -> tensor<50xbf16>
    %8 = graph.cast %h : (tensor<50xf16>) -> tensor<50xi8>
    %9 = graph.cast %h : (tensor<50xf16>) -> tensor<50xui8>
    %10 = graph.cast %h : (tensor<50xf16>) -> tensor<50xi32>
    %11 = graph.cast %i : (tensor<49xi32>) -> tensor<49xf32>
    %12 = graph.cast %i : (tensor<49xi32>) -> tensor<49xf16>
    %13 = graph.cast %i : (tensor<49xi32>) -> tensor<49xi8>
    %14 = graph.cast %i : (tensor<49xi32>) -> tensor<49xui8>
    %15 = graph.cast %i : (tensor<49xi32>) -> tensor<49xi1>
    %16 = graph.cast %b : (tensor<33xi1>) -> tensor<33xf32>
    %17 = graph.cast %b : (tensor<33xi1>) -> tensor<33xi32>
    %18 = graph.cast %u : (tensor<35xui8>) -> tensor<35xf16>
    %19 = graph.cast %u : (tensor<35xui8>) -> tensor<35xi8>
    %20 = graph.cast %u : (tensor<35xui8>) -> tensor<35xi32>
    func.return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20 : tensor<48xf16>, tensor<48xbf16>, tensor<48xi32>, tensor<48xi8>, tensor<48xui8>, tensor<48xi1>, tensor<50xf32>, tensor<50xbf16>, tensor<50xi8>, tensor<50xui8>, tensor<50xi32>, tensor<49xf32>, tensor<49xf16>, tensor<49xi8>, tensor<49xui8>, tensor<49xi1>, tensor<33xf32>, tensor<33xi32>, tensor<35xf16>, tensor<35xi8>, tensor<35xi32>
  }
}
