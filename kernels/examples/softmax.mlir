// Softmax along each row, with a scale: y = exp(scale * (x - max x)) / sum exp(scale * (x - max x)). The scale is not negative.
//
//   y     [n, D] T    written; may be x itself
//   x     [n, D] T
//   scale        f32

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>

mlafix.kernel @softmax(
    %y: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %scale: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %max = mlafix.reduce max %v : !tile
    %maxs = mlafix.splat %max : f32 -> !tile
    %scales = mlafix.splat %scale : f32 -> !tile
    %shifted = arith.subf %v, %maxs : !tile
    %scaled = arith.mulf %shifted, %scales : !tile
    %exp = math.exp %scaled : !tile
    %sum = mlafix.reduce add %exp : !tile
    %sums = mlafix.splat %sum : f32 -> !tile
    %result = arith.divf %exp, %sums : !tile
    mlafix.store %result, %y[%t] : !tile, !rows
  }
}
