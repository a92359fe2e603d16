// For each t, adds the rows t of all ranks, in the order of the ranks. Leaves out ranks whose count for the row is not
// positive. The build compiles this kernel for the conformance program, which launches it (RanksTest.cpp).
//
//   out     [n, D] f32           written
//   parts   [ranks, n, D] T      read, of each rank
//   counts  [ranks, n] i32       read, of each rank

!outs = memref<?x?xf32, strided<[?, 1], offset: ?>>
!parts = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!counts = memref<?x?xi32, strided<[?, ?], offset: ?>>
!row = tensor<?xf32, #mlafix.dim<"D">>
mlafix.kernel @rows_of_ranks(
    %out: !outs {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %parts: !parts {mlafix.dims = ["ranks", "n", "D"], mlafix.dtype = "T", mlafix.access = "read", mlafix.peers},
    %counts: !counts {mlafix.dims = ["ranks", "n"], mlafix.access = "read", mlafix.peers}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %out, %c0 : !outs
  %ranks = memref.dim %parts, %c0 : !parts
  mlafix.forall (%t) in (%n) {
    %zeros = mlafix.splat %zero : f32 -> !row
    %sum = scf.for %r = %c0 to %ranks step %c1 iter_args(%acc = %zeros) -> (!row) {
      %count = mlafix.load %counts[%r, %t] : !counts -> i32
      %live = arith.cmpi sgt, %count, %none : i32
      %row = mlafix.load %parts[%r, %t] if %live : !parts -> !row
      %next = arith.addf %acc, %row : !row
      scf.yield %next : !row
    }
    mlafix.store %sum, %out[%t] : !row, !outs
  }
}
