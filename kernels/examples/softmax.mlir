// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/rows.py: edit that.
//
// Softmax along each row, with a scale: y = exp(scale * (x - max x)) / sum exp(scale * (x - max x)). The scale is not negative.
//
//   y     [n, D] T    written; may be x itself
//   x     [n, D] T
//   scale        f32

!bf16_2d = memref<?x?xbf16, strided<[?, 1], offset: ?>>

mlafix.kernel @softmax(
    %y: !bf16_2d {mlafix.access = "write", mlafix.dims = ["n", "D"], mlafix.dtype = "T"},
    %x: !bf16_2d {mlafix.access = "read", mlafix.dims = ["n", "D"], mlafix.dtype = "T"},
    %scale: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !bf16_2d
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf16_2d -> tensor<?xf32, #mlafix.dim<"D">>
    %0 = mlafix.reduce  max %v : tensor<?xf32, #mlafix.dim<"D">>
    %1 = mlafix.splat %0 : f32 -> tensor<?xf32, #mlafix.dim<"D">>
    %2 = arith.subf %v, %1 : tensor<?xf32, #mlafix.dim<"D">>
    %3 = mlafix.splat %scale : f32 -> tensor<?xf32, #mlafix.dim<"D">>
    %4 = arith.mulf %2, %3 : tensor<?xf32, #mlafix.dim<"D">>
    %weights = math.exp %4 : tensor<?xf32, #mlafix.dim<"D">>
    %5 = mlafix.reduce  add %weights : tensor<?xf32, #mlafix.dim<"D">>
    %6 = mlafix.splat %5 : f32 -> tensor<?xf32, #mlafix.dim<"D">>
    %7 = arith.divf %weights, %6 : tensor<?xf32, #mlafix.dim<"D">>
    mlafix.store %7, %y[%t] : tensor<?xf32, #mlafix.dim<"D">>, !bf16_2d
  }
}
