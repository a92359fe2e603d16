// Merges up to eight partial attention states that lie in buffers of their own: out, out_lse = (v0, s0) (+) … (+) (v7, s7).
//
//   out     [n, H, D] T    written; may be one of v0 … v7 itself
//   out_lse [n, H]    f32  written; optional; may be one of s0 … s7 itself
//   v0 … v7 [n, H, D] T    all but v0 optional: one that is omitted counts for nothing
//   s0 … s7 [n, H]    f32  likewise
//
// The lse is in base e, or in base 2 where B = 2.

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>

mlafix.kernel @merge_states_list(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %out_lse: !lses {mlafix.dims = ["n", "H"], mlafix.access = "write", mlafix.optional},
    %v0: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %s0: !lses {mlafix.dims = ["n", "H"], mlafix.access = "read"},
    %v1: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read", mlafix.optional},
    %s1: !lses {mlafix.dims = ["n", "H"], mlafix.access = "read", mlafix.optional},
    %v2: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read", mlafix.optional},
    %s2: !lses {mlafix.dims = ["n", "H"], mlafix.access = "read", mlafix.optional},
    %v3: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read", mlafix.optional},
    %s3: !lses {mlafix.dims = ["n", "H"], mlafix.access = "read", mlafix.optional},
    %v4: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read", mlafix.optional},
    %s4: !lses {mlafix.dims = ["n", "H"], mlafix.access = "read", mlafix.optional},
    %v5: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read", mlafix.optional},
    %s5: !lses {mlafix.dims = ["n", "H"], mlafix.access = "read", mlafix.optional},
    %v6: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read", mlafix.optional},
    %s6: !lses {mlafix.dims = ["n", "H"], mlafix.access = "read", mlafix.optional},
    %v7: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read", mlafix.optional},
    %s7: !lses {mlafix.dims = ["n", "H"], mlafix.access = "read", mlafix.optional}) attributes {defaults = {B = "e"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %p0 = mlafix.load_state %v0[%t, %h] lse %s0[%t, %h] : !rows, !lses -> !mlafix.state<"D", "B">
    %p1 = mlafix.load_state %v1[%t, %h] lse %s1[%t, %h] : !rows, !lses -> !mlafix.state<"D", "B">
    %p2 = mlafix.load_state %v2[%t, %h] lse %s2[%t, %h] : !rows, !lses -> !mlafix.state<"D", "B">
    %p3 = mlafix.load_state %v3[%t, %h] lse %s3[%t, %h] : !rows, !lses -> !mlafix.state<"D", "B">
    %p4 = mlafix.load_state %v4[%t, %h] lse %s4[%t, %h] : !rows, !lses -> !mlafix.state<"D", "B">
    %p5 = mlafix.load_state %v5[%t, %h] lse %s5[%t, %h] : !rows, !lses -> !mlafix.state<"D", "B">
    %p6 = mlafix.load_state %v6[%t, %h] lse %s6[%t, %h] : !rows, !lses -> !mlafix.state<"D", "B">
    %p7 = mlafix.load_state %v7[%t, %h] lse %s7[%t, %h] : !rows, !lses -> !mlafix.state<"D", "B">
    %all = mlafix.merge %p0, %p1, %p2, %p3, %p4, %p5, %p6, %p7 : !mlafix.state<"D", "B">
    mlafix.store_state %all to %out[%t, %h] lse %out_lse[%t, %h] : !mlafix.state<"D", "B">, !rows, !lses
  }
}
