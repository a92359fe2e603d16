// Merges the partial attention states of all ranks, each of which lies in the memory of its rank:
// out, out_lse = (rows[0], lses[0]) (+) … (+) (rows[ranks - 1], lses[ranks - 1]).
//
//   out     [n, H, D] T           written
//   out_lse [n, H]    f32         written
//   rows    [ranks, n, H, D] T    one tensor [n, H, D] per rank, in that rank's memory
//   lses    [ranks, n, H]    f32  one tensor [n, H] per rank, in that rank's memory; in base e

!outs = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!rank_rows = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1], offset: ?>>
!rank_lses = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>

mlafix.kernel @merge_ranks(
    %out: !outs {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %out_lse: !lses {mlafix.dims = ["n", "H"], mlafix.access = "write"},
    %rows: !rank_rows {mlafix.dims = ["ranks", "n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read", mlafix.peers},
    %lses: !rank_lses {mlafix.dims = ["ranks", "n", "H"], mlafix.access = "read", mlafix.peers}) attributes {defaults = {B = "e"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !outs
  %H = memref.dim %out, %c1 : !outs
  %ranks = memref.dim %rows, %c0 : !rank_rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %none = mlafix.identity : !mlafix.state<"D", "B">
    %all = scf.for %r = %c0 to %ranks step %c1 iter_args(%sum = %none) -> (!mlafix.state<"D", "B">) {
      %part = mlafix.load_state %rows[%r, %t, %h] lse %lses[%r, %t, %h] : !rank_rows, !rank_lses -> !mlafix.state<"D", "B">
      %next = mlafix.merge %sum, %part : !mlafix.state<"D", "B">
      scf.yield %next : !mlafix.state<"D", "B">
    }
    mlafix.store_state %all to %out[%t, %h] lse %out_lse[%t, %h] : !mlafix.state<"D", "B">, !outs, !lses
  }
}
