// Merges two partial attention states per (token, head) row: out, lse = prefix (+) suffix in the monoid of attention states.
//
//   out        [n, H, D] T    written; may be prefix or suffix itself
//   out_lse    [H, n]    f32  written; optional; may be prefix_lse or suffix_lse itself
//   prefix     [n, H, D] T    its rows at or past context_rows are not read
//   prefix_lse [H, n]    f32
//   suffix     [n, H, D] T
//   suffix_lse [H, n]    f32
//   context_rows         index, 0 … n: rows at or past it copy the suffix
//
// The lse is in base e, or in base 2 where B = 2. Its layout is whatever its strides say: an [n, H] tensor is passed as its
// transposed view. A row whose lse is -inf or +inf holds nothing, whatever its payload is; a row in which both sides hold
// nothing becomes 0, -inf.

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>

mlafix.kernel @merge_attn_states(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %out_lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "write", mlafix.optional},
    %prefix: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %prefix_lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read"},
    %suffix: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %suffix_lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read"},
    %context_rows: index {mlafix.at_most = "n"}) attributes {defaults = {B = "e"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %in_context = arith.cmpi slt, %t, %context_rows : index
    %p = mlafix.load_state %prefix[%t, %h] lse %prefix_lse[%h, %t] if %in_context : !rows, !lses -> !mlafix.state<"D", "B">
    %s = mlafix.load_state %suffix[%t, %h] lse %suffix_lse[%h, %t] : !rows, !lses -> !mlafix.state<"D", "B">
    %m = mlafix.merge %p, %s : !mlafix.state<"D", "B">
    mlafix.store_state %m to %out[%t, %h] lse %out_lse[%h, %t] : !mlafix.state<"D", "B">, !rows, !lses
  }
}
