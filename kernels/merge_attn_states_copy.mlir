// Merges two partial attention states per (token, head) row, as merge_attn_states does; rows at or past context_rows are copies of
// the suffix, payload and lse bit for bit, an lse of +inf and the payload beside it included.
//
//   out        [n, H, D] T    written; may be prefix or suffix itself
//   out_lse    [H, n]    f32  written; optional; may be prefix_lse or suffix_lse itself
//   prefix     [n, H, D] T    its rows at or past context_rows are not read
//   prefix_lse [H, n]    f32
//   suffix     [n, H, D] T
//   suffix_lse [H, n]    f32
//   context_rows         index, 0 … n: rows at or past it are copies of the suffix
//
// The copy is a row of its own, not a state: a state with an lse of +inf is empty (N2) and would be stored as 0, -inf. So its
// payload does not wait for its lse, either. The lse is in base e, or in base 2 where B = 2.

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>

mlafix.kernel @merge_attn_states_copy(
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
    scf.if %in_context {
      %p = mlafix.load_state %prefix[%t, %h] lse %prefix_lse[%h, %t] : !rows, !lses -> !mlafix.state<"D", "B">
      %s = mlafix.load_state %suffix[%t, %h] lse %suffix_lse[%h, %t] : !rows, !lses -> !mlafix.state<"D", "B">
      %m = mlafix.merge %p, %s : !mlafix.state<"D", "B">
      mlafix.store_state %m to %out[%t, %h] lse %out_lse[%h, %t] : !mlafix.state<"D", "B">, !rows, !lses
    } else {
      %row = mlafix.load %suffix[%t, %h] : !rows -> !tile
      %lse = mlafix.load %suffix_lse[%h, %t] : !lses -> f32
      mlafix.store %row, %out[%t, %h] : !tile, !rows
      mlafix.store %lse, %out_lse[%h, %t] : f32, !lses
    }
  }
}
