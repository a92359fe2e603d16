// Clears the flags of rows that only pad a batch: flags = false at or past live_rows.
//
//   flags        [n] bool  pad rows are written, no others
//   live_rows        index, 0 … n
//   live_rows_at [1] i32   holds it on the device, so that a captured graph follows it; a negative count is none; optional

!flags = memref<?xi1, strided<[?], offset: ?>>
!count = memref<1xi32, strided<[1], offset: ?>>

mlafix.kernel @clear_pad_flags(
    %flags: !flags {mlafix.dims = ["n"], mlafix.access = "update"},
    %live_rows: index {mlafix.at_most = "n"},
    %live_rows_at: !count {mlafix.dims = [""], mlafix.access = "read", mlafix.optional}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %flags, %c0 : !flags
  mlafix.forall (%t) in (%n) {
    %is_there = mlafix.present %live_rows_at : !count
    %count = mlafix.load %live_rows_at[%c0] : !count -> i32
    %held = arith.index_cast %count : i32 to index
    %live = arith.select %is_there, %held, %live_rows : index
    %true = arith.constant true
    %false = arith.constant false
    %is_live = arith.cmpi slt, %t, %live : index
    %is_pad = arith.xori %is_live, %true : i1
    mlafix.store %false, %flags[%t] if %is_pad : i1, !flags
  }
}
