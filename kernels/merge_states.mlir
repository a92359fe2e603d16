// Merges the k partial attention states of each (token, head) row: out, out_lse = (+) over j of (v[:, j], s[:, j]).
//
//   out     [n, H, D]    T    written
//   out_lse [n, H]       f32  written; optional
//   v       [n, k, H, D] T    each row is read once
//   s       [n, k, H]    f32
//
// The lse is in base e, or in base 2 where B = 2. k may be 0, which gives 0, -inf; binding it (k = 4) makes code for that k alone.

!outs = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!rows = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1], offset: ?>>
!parts = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>

mlafix.kernel @merge_states(
    %out: !outs {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %out_lse: !lses {mlafix.dims = ["n", "H"], mlafix.access = "write", mlafix.optional},
    %v: !rows {mlafix.dims = ["n", "k", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %s: !parts {mlafix.dims = ["n", "k", "H"], mlafix.access = "read"}) attributes {defaults = {B = "e"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !outs
  %H = memref.dim %out, %c1 : !outs
  %k = memref.dim %v, %c1 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %none = mlafix.identity : !mlafix.state<"D", "B">
    %all = scf.for %j = %c0 to %k step %c1 iter_args(%acc = %none) -> (!mlafix.state<"D", "B">) {
      %part = mlafix.load_state %v[%t, %j, %h] lse %s[%t, %j, %h] : !rows, !parts -> !mlafix.state<"D", "B">
      %sum = mlafix.merge %acc, %part : !mlafix.state<"D", "B">
      scf.yield %sum : !mlafix.state<"D", "B">
    }
    mlafix.store_state %all to %out[%t, %h] lse %out_lse[%t, %h] : !mlafix.state<"D", "B">, !outs, !lses
  }
}
