// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/rows.py: edit that.
//
// RMSNorm of each row: y = x / sqrt(mean(x^2) + epsilon) * weight (Zhang and Sennrich, 2019).
//
//   y      [n, D] T    written; may be x itself
//   x      [n, D] T
//   weight [D]    T
//   epsilon       f32

!bf16_2d = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!bf16_1d = memref<?xbf16, strided<[1], offset: ?>>

mlafix.kernel @rmsnorm(
    %y: !bf16_2d {mlafix.access = "write", mlafix.dims = ["n", "D"], mlafix.dtype = "T"},
    %x: !bf16_2d {mlafix.access = "read", mlafix.dims = ["n", "D"], mlafix.dtype = "T"},
    %weight: !bf16_1d {mlafix.access = "read", mlafix.dims = ["D"], mlafix.dtype = "T"},
    %epsilon: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !bf16_2d
  %D = memref.dim %x, %c1 : !bf16_2d
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf16_2d -> tensor<?xf32, #mlafix.dim<"D">>
    %w = mlafix.load %weight[] : !bf16_1d -> tensor<?xf32, #mlafix.dim<"D">>
    %0 = arith.mulf %v, %v : tensor<?xf32, #mlafix.dim<"D">>
    %1 = mlafix.reduce  add %0 : tensor<?xf32, #mlafix.dim<"D">>
    %2 = arith.index_cast %D : index to i64
    %3 = arith.sitofp %2 : i64 to f32
    %mean = arith.divf %1, %3 : f32
    %4 = arith.addf %mean, %epsilon : f32
    %5 = math.rsqrt %4 : f32
    %6 = mlafix.splat %5 : f32 -> tensor<?xf32, #mlafix.dim<"D">>
    %7 = arith.mulf %v, %6 : tensor<?xf32, #mlafix.dim<"D">>
    %8 = arith.mulf %7, %w : tensor<?xf32, #mlafix.dim<"D">>
    mlafix.store %8, %y[%t] : tensor<?xf32, #mlafix.dim<"D">>, !bf16_2d
  }
}
