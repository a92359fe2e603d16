// Clears the flags of rows that only pad a batch: flags = false at or past live_rows.
//
//   flags     [n] bool  pad rows are written, no others
//   live_rows     index, 0 … n

!flags = memref<?xi1, strided<[?], offset: ?>>

mlafix.kernel @clear_pad_flags(
    %flags: !flags {mlafix.dims = ["n"], mlafix.access = "update"},
    %live_rows: index {mlafix.at_most = "n"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %flags, %c0 : !flags
  mlafix.forall (%t) in (%n) {
    %true = arith.constant true
    %false = arith.constant false
    %is_live = arith.cmpi slt, %t, %live_rows : index
    %is_pad = arith.xori %is_live, %true : i1
    mlafix.store %false, %flags[%t] if %is_pad : i1, !flags
  }
}
