// Sends rows to each rank, except for rows whose count is not positive. Adds the rows that this rank received, in the
// order of the ranks. The build compiles this kernel for the conformance program, which launches it (RanksTest.cpp).
//
//   out            [n, D] f32                      written
//   staged         [ranks, 2, ranks, n, D] T       written and read, of each rank: two halves,
//                                                  used in turn, each with a block from every sender
//   staged_counts  [ranks, 2, ranks, n] i32        likewise
//   mine           [ranks, n, D] T                 read: block r is for rank r
//   counts         [ranks, n] i32                  read
//   rank           index                           number of this rank

!outs = memref<?x?xf32, strided<[?, 1], offset: ?>>
!staged = memref<?x2x?x?x?xbf16, strided<[?, ?, ?, ?, 1], offset: ?>>
!staged_counts = memref<?x2x?x?xi32, strided<[?, ?, ?, ?], offset: ?>>
!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!counts = memref<?x?xi32, strided<[?, ?], offset: ?>>
!row = tensor<?xf32, #mlafix.dim<"D">>
mlafix.kernel @rows_sent_to_ranks(
    %out: !outs {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %staged: !staged {mlafix.dims = ["ranks", "turns", "r", "n", "D"], mlafix.dtype = "T", mlafix.access = "update", mlafix.peers},
    %staged_counts: !staged_counts {mlafix.dims = ["ranks", "turns", "r", "n"], mlafix.access = "update", mlafix.peers},
    %mine: !rows {mlafix.dims = ["ranks", "n", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %counts: !counts {mlafix.dims = ["ranks", "n"], mlafix.access = "read"},
    %rank: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %out, %c0 : !outs
  %ranks = memref.dim %staged, %c0 : !staged
  mlafix.forall (%t) in (%n) {
    %turn = mlafix.turn : index
    scf.for %r = %c0 to %ranks step %c1 {
      %count = mlafix.load %counts[%r, %t] : !counts -> i32
      %live = arith.cmpi sgt, %count, %none : i32
      %row = mlafix.load %mine[%r, %t] if %live : !rows -> !row
      mlafix.store %row, %staged[%r, %turn, %rank, %t] if %live : !row, !staged
      mlafix.store %count, %staged_counts[%r, %turn, %rank, %t] : i32, !staged_counts
    }
    mlafix.exchange
    %zeros = mlafix.splat %zero : f32 -> !row
    %sum = scf.for %r = %c0 to %ranks step %c1 iter_args(%acc = %zeros) -> (!row) {
      %count = mlafix.load %staged_counts[%rank, %turn, %r, %t] : !staged_counts -> i32
      %live = arith.cmpi sgt, %count, %none : i32
      %row = mlafix.load %staged[%rank, %turn, %r, %t] if %live : !staged -> !row
      %next = arith.addf %acc, %row : !row
      scf.yield %next : !row
    }
    mlafix.store %sum, %out[%t] : !row, !outs
  }
}
