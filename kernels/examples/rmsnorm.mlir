// RMSNorm of each row: y = x / sqrt(mean(x^2) + epsilon) * weight (Zhang and Sennrich, 2019).
//
//   y      [n, D] T    written; may be x itself
//   x      [n, D] T
//   weight [D]    T
//   epsilon       f32

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!row = memref<?xbf16, strided<[1], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>

mlafix.kernel @rmsnorm(
    %y: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %weight: !row {mlafix.dims = ["D"], mlafix.dtype = "T", mlafix.access = "read"},
    %epsilon: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !rows
  %D = memref.dim %x, %c1 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %w = mlafix.load %weight[] : !row -> !tile
    %squares = arith.mulf %v, %v : !tile
    %sum = mlafix.reduce add %squares : !tile
    %size = arith.index_cast %D : index to i32
    %count = arith.sitofp %size : i32 to f32
    %mean = arith.divf %sum, %count : f32
    %shifted = arith.addf %mean, %epsilon : f32
    %inverse = math.rsqrt %shifted : f32
    %scale = mlafix.splat %inverse : f32 -> !tile
    %normal = arith.mulf %v, %scale : !tile
    %result = arith.mulf %normal, %w : !tile
    mlafix.store %result, %y[%t] : !tile, !rows
  }
}
