// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/metadata.py: edit that.
//
// Clears the flags of rows that only pad a batch: flags = false at or past live_rows.
//
//   flags        [n] bool  pad rows are written, no others
//   live_rows        index, 0 … n
//   live_rows_at [1] i32   the same count on the device, for captured graphs; a negative one counts as 0; optional

!i1_1d = memref<?xi1, strided<[?], offset: ?>>
!i32_1d = memref<1xi32, strided<[1], offset: ?>>

mlafix.kernel @clear_pad_flags(
    %flags: !i1_1d {mlafix.access = "update", mlafix.dims = ["n"]},
    %live_rows: index {mlafix.at_most = "n"},
    %live_rows_at: !i32_1d {mlafix.access = "read", mlafix.dims = [""], mlafix.optional}) {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %false = arith.constant false
  %n = memref.dim %flags, %c0 : !i1_1d
  mlafix.forall (%t) in (%n) {
    %0 = mlafix.present %live_rows_at : !i32_1d
    %1 = mlafix.load %live_rows_at[%c0] : !i32_1d -> i32
    %2 = arith.index_cast %1 : i32 to index
    %3 = arith.select %0, %2, %live_rows : index
    %4 = arith.cmpi slt, %t, %3 : index
    %5 = arith.xori %4, %true : i1
    mlafix.store %false, %flags[%t] if %5 : i1, !i1_1d
  }
}
