// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/rows.py: edit that.
//
// Quantises rows to fp8 with one scale: out = saturate(x * (1 / scale)).
//
//   out   [n, D] f8e4m3fn  written; rounds to nearest even, saturates at +-448, NaN stays NaN
//   x     [n, D] T
//   scale [1]    f32       on the device

!f8E4M3FN_2d = memref<?x?xf8E4M3FN, strided<[?, 1], offset: ?>>
!bf16_2d = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!f32_1d = memref<1xf32, strided<[1], offset: ?>>

mlafix.kernel @quantize_fp8_static(
    %out: !f8E4M3FN_2d {mlafix.access = "write", mlafix.dims = ["n", "D"]},
    %x: !bf16_2d {mlafix.access = "read", mlafix.dims = ["n", "D"], mlafix.dtype = "T"},
    %scale: !f32_1d {mlafix.access = "read", mlafix.dims = ["one"]}) {
  %c0 = arith.constant 0 : index
  %f1 = arith.constant 1.000000e+00 : f32
  %n = memref.dim %x, %c0 : !bf16_2d
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf16_2d -> tensor<?xf32, #mlafix.dim<"D">>
    %0 = mlafix.load %scale[%c0] : !f32_1d -> f32
    %1 = arith.divf %f1, %0 : f32
    %2 = mlafix.splat %1 : f32 -> tensor<?xf32, #mlafix.dim<"D">>
    %3 = arith.mulf %v, %2 : tensor<?xf32, #mlafix.dim<"D">>
    mlafix.store %3, %out[%t] : tensor<?xf32, #mlafix.dim<"D">>, !f8E4M3FN_2d
  }
}
