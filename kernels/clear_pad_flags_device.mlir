// Clears the flags of rows that only pad a batch: flags = false at or past live_rows.
//
//   flags     [n] bool  pad rows are written, no others
//   live_rows [1] i32   on the device, so that a captured graph follows it; a negative count is none

!flags = memref<?xi1, strided<[?], offset: ?>>
!count = memref<1xi32, strided<[1], offset: ?>>

mlafix.kernel @clear_pad_flags_device(
    %flags: !flags {mlafix.dims = ["n"], mlafix.access = "update"},
    %live_rows: !count {mlafix.dims = ["one"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %flags, %c0 : !flags
  mlafix.forall (%t) in (%n) {
    %true = arith.constant true
    %false = arith.constant false
    %count = mlafix.load %live_rows[%c0] : !count -> i32
    %live = arith.index_cast %count : i32 to index
    %is_live = arith.cmpi slt, %t, %live : index
    %is_pad = arith.xori %is_live, %true : i1
    mlafix.store %false, %flags[%t] if %is_pad : i1, !flags
  }
}
