// Combines the partial results of attention over s splits of the keys: out, out_lse = (+) over i of (partial[i], partial_lse[i]).
//
//   out         [b, l, H, D]    O    written
//   out_lse     [b, l, H]       f32  written; optional
//   partial     [s, b, l, H, D] T    each row is read once; f32 as a rule
//   partial_lse [s, b, l, H]    f32
//
// The lse is in base e, or in base 2 where B = 2. s may be 0, which gives 0, -inf; binding it (s = 4) makes code for that s alone.

!outs = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1], offset: ?>>
!lses = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
!rows = memref<?x?x?x?x?xf32, strided<[?, ?, ?, ?, 1], offset: ?>>
!parts = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>

mlafix.kernel @combine_split_kv(
    %out: !outs {mlafix.dims = ["b", "l", "H", "D"], mlafix.dtype = "O", mlafix.access = "write"},
    %out_lse: !lses {mlafix.dims = ["b", "l", "H"], mlafix.access = "write", mlafix.optional},
    %partial: !rows {mlafix.dims = ["s", "b", "l", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %partial_lse: !parts {mlafix.dims = ["s", "b", "l", "H"], mlafix.access = "read"}) attributes {defaults = {B = "e", T = "f32"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = memref.dim %out, %c0 : !outs
  %l = memref.dim %out, %c1 : !outs
  %H = memref.dim %out, %c2 : !outs
  %s = memref.dim %partial, %c0 : !rows
  mlafix.forall (%i, %j, %h) in (%b, %l, %H) {
    %none = mlafix.identity : !mlafix.state<"D", "B">
    %all = scf.for %k = %c0 to %s step %c1 iter_args(%acc = %none) -> (!mlafix.state<"D", "B">) {
      %part = mlafix.load_state %partial[%k, %i, %j, %h] lse %partial_lse[%k, %i, %j, %h] : !rows, !parts -> !mlafix.state<"D", "B">
      %sum = mlafix.merge %acc, %part : !mlafix.state<"D", "B">
      scf.yield %sum : !mlafix.state<"D", "B">
    }
    mlafix.store_state %all to %out[%i, %j, %h] lse %out_lse[%i, %j, %h] : !mlafix.state<"D", "B">, !outs, !lses
  }
}
