// Blanks the rows that only pad a batch: on the rows at or past live_rows, out = +0.0 and lse = -inf.
//
//   out       [n, H, D] T    pad rows are written, no others
//   lse       [H, n]    f32  likewise; optional
//   live_rows           index, 0 … n

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>

mlafix.kernel @fill_pad_rows(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"},
    %lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "update", mlafix.optional},
    %live_rows: index {mlafix.at_most = "n"}) attributes {defaults = {B = "e"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %true = arith.constant true
    %is_live = arith.cmpi slt, %t, %live_rows : index
    %is_pad = arith.xori %is_live, %true : i1
    %none = mlafix.identity : !mlafix.state<"D", "B">
    mlafix.store_state %none to %out[%t, %h] lse %lse[%h, %t] if %is_pad : !mlafix.state<"D", "B">, !rows, !lses
  }
}
