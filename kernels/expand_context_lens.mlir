// Expands a context length per request to one per decoded token: out[i, j] = max(seq_lens[i] - l + 1 + j, 0) for the first
// live_rows requests, 0 for the rest, which only pad a batch.
//
//   out          [d, l] i32  written
//   seq_lens     [r]    i32
//   live_rows           index
//   live_rows_at [1]    i32  holds it on the device, so that a captured graph follows it; a negative count is none; optional
//
// Requests past r count as not live.

!outs = memref<?x?xi32, strided<[?, ?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>
!count = memref<1xi32, strided<[1], offset: ?>>

mlafix.kernel @expand_context_lens(
    %out: !outs {mlafix.dims = ["d", "l"], mlafix.access = "write"},
    %seq_lens: !ints {mlafix.dims = ["r"], mlafix.access = "read"},
    %live_rows: index,
    %live_rows_at: !count {mlafix.dims = [""], mlafix.access = "read", mlafix.optional}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = memref.dim %out, %c0 : !outs
  %l = memref.dim %out, %c1 : !outs
  %r = memref.dim %seq_lens, %c0 : !ints
  mlafix.forall (%t, %j) in (%d, %l) {
    %is_there = mlafix.present %live_rows_at : !count
    %count = mlafix.load %live_rows_at[%c0] : !count -> i32
    %held = arith.index_cast %count : i32 to index
    %live = arith.select %is_there, %held, %live_rows : index
    %zero = arith.constant 0 : i64
    %is_live = arith.cmpi slt, %t, %live : index
    %known = arith.cmpi slt, %t, %r : index
    %reads = arith.andi %is_live, %known : i1
    %len = mlafix.load %seq_lens[%t] if %reads : !ints -> i64
    // In 64 bits: a length near the end of i32 must not wrap around to a large one.
    %after = arith.subi %l, %j : index
    %behind = arith.subi %after, %c1 : index
    %distance = arith.index_cast %behind : index to i64
    %context = arith.subi %len, %distance : i64
    %clamped = arith.maxsi %context, %zero : i64
    %value = arith.select %reads, %clamped, %zero : i64
    %narrow = arith.trunci %value : i64 to i32
    mlafix.store %narrow, %out[%t, %j] : i32, !outs
  }
}
