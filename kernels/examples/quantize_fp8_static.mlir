// Quantises rows to fp8 with one scale: out = saturate(x * (1 / scale)).
//
//   out   [n, D] f8e4m3fn  written; rounds to nearest even, saturates at +-448, NaN stays NaN
//   x     [n, D] T
//   scale [1]    f32       on the device

!bytes = memref<?x?xf8E4M3FN, strided<[?, 1], offset: ?>>
!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!one = memref<1xf32, strided<[1], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>

mlafix.kernel @quantize_fp8_static(
    %out: !bytes {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %scale: !one {mlafix.dims = ["one"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %s = mlafix.load %scale[%c0] : !one -> f32
    %one = arith.constant 1.0 : f32
    %inverse = arith.divf %one, %s : f32
    %factor = mlafix.splat %inverse : f32 -> !tile
    %scaled = arith.mulf %v, %factor : !tile
    mlafix.store %scaled, %out[%t] : !tile, !bytes
  }
}
