// Blanks the rows that only pad a batch: on the rows at or past live_rows, out = +0.0 and lse = -inf.
//
//   out          [n, H, D] T    pad rows are written, no others
//   lse          [H, n]    f32  likewise; optional
//   live_rows              index, 0 … n
//   live_rows_at [1]       i32  holds it on the device, so that a captured graph follows it; a negative count is none; optional

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!count = memref<1xi32, strided<[1], offset: ?>>

mlafix.kernel @fill_pad_rows(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"},
    %lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "update", mlafix.optional},
    %live_rows: index {mlafix.at_most = "n"},
    %live_rows_at: !count {mlafix.dims = [""], mlafix.access = "read", mlafix.optional}) attributes {defaults = {B = "e"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %is_there = mlafix.present %live_rows_at : !count
    %count = mlafix.load %live_rows_at[%c0] : !count -> i32
    %held = arith.index_cast %count : i32 to index
    %live = arith.select %is_there, %held, %live_rows : index
    %true = arith.constant true
    %is_live = arith.cmpi slt, %t, %live : index
    %is_pad = arith.xori %is_live, %true : i1
    %none = mlafix.identity : !mlafix.state<"D", "B">
    mlafix.store_state %none to %out[%t, %h] lse %lse[%h, %t] if %is_pad : !mlafix.state<"D", "B">, !rows, !lses
  }
}
