// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/blank.py: edit that.
//
// Blanks the rows that only pad a batch: on the rows at or past live_rows, out = +0.0 and lse = -inf.
//
//   out          [n, H, D] T    pad rows are written, no others
//   lse          [H, n]    f32  likewise; optional
//   live_rows              index, 0 … n
//   live_rows_at [1]       i32  the same count on the device, for captured graphs; a negative one counts as 0; optional

!bf16_3d = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!f32_2d = memref<?x?xf32, strided<[?, ?], offset: ?>>
!i32_1d = memref<1xi32, strided<[1], offset: ?>>

mlafix.kernel @fill_pad_rows(
    %out: !bf16_3d {mlafix.access = "update", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %lse: !f32_2d {mlafix.access = "update", mlafix.dims = ["H", "n"], mlafix.optional},
    %live_rows: index {mlafix.at_most = "n"},
    %live_rows_at: !i32_1d {mlafix.access = "read", mlafix.dims = [""], mlafix.optional}) attributes {defaults = {B = "e"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  %n = memref.dim %out, %c0 : !bf16_3d
  %H = memref.dim %out, %c1 : !bf16_3d
  mlafix.forall (%t, %h) in (%n, %H) {
    %0 = mlafix.present %live_rows_at : !i32_1d
    %1 = mlafix.load %live_rows_at[%c0] : !i32_1d -> i32
    %2 = arith.index_cast %1 : i32 to index
    %3 = arith.select %0, %2, %live_rows : index
    %4 = mlafix.identity : <"D", "B">
    %5 = arith.cmpi slt, %t, %3 : index
    %6 = arith.xori %5, %true : i1
    mlafix.store_state %4 to %out[%t, %h] lse %lse[%h, %t] if %6 : <"D", "B">, !bf16_3d, !f32_2d
  }
}
