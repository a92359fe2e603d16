// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/metadata.py: edit that.
//
// Expands a context length per request to one per decoded token: out[i, j] = max(seq_lens[i] - l + 1 + j, 0) for the first
// live_rows requests, 0 for the rest, which only pad a batch.
//
//   out          [d, l] i32  written
//   seq_lens     [r]    i32
//   live_rows           index, 0 … d
//   live_rows_at [1]    i32  the same count on the device, for captured graphs; a negative one counts as 0; optional
//
// Requests past r count as not live.

!i32_2d = memref<?x?xi32, strided<[?, ?], offset: ?>>
!i32_1d = memref<?xi32, strided<[?], offset: ?>>
!i32_1d_2 = memref<1xi32, strided<[1], offset: ?>>

mlafix.kernel @expand_context_lens(
    %out: !i32_2d {mlafix.access = "write", mlafix.dims = ["d", "l"]},
    %seq_lens: !i32_1d {mlafix.access = "read", mlafix.dims = ["r"]},
    %live_rows: index {mlafix.at_most = "d"},
    %live_rows_at: !i32_1d_2 {mlafix.access = "read", mlafix.dims = [""], mlafix.optional}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c0_i64 = arith.constant 0 : i64
  %d = memref.dim %out, %c0 : !i32_2d
  %l = memref.dim %out, %c1 : !i32_2d
  %r = memref.dim %seq_lens, %c0 : !i32_1d
  mlafix.forall (%t, %j) in (%d, %l) {
    %0 = mlafix.present %live_rows_at : !i32_1d_2
    %1 = mlafix.load %live_rows_at[%c0] : !i32_1d_2 -> i32
    %2 = arith.index_cast %1 : i32 to index
    %3 = arith.select %0, %2, %live_rows : index
    %4 = arith.cmpi slt, %t, %3 : index
    %5 = arith.cmpi slt, %t, %r : index
    %reads = arith.andi %4, %5 : i1
    %6 = mlafix.load %seq_lens[%t] if %reads : !i32_1d -> i32
    %length = arith.extsi %6 : i32 to i64
    %7 = arith.subi %l, %j : index
    %8 = arith.subi %7, %c1 : index
    %distance = arith.index_cast %8 : index to i64
    %9 = arith.subi %length, %distance : i64
    %10 = arith.maxsi %9, %c0_i64 : i64
    %11 = arith.select %reads, %10, %c0_i64 : i64
    %12 = arith.trunci %11 : i64 to i32
    mlafix.store %12, %out[%t, %j] : i32, !i32_2d
  }
}
