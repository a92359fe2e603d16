// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/merge.py: edit that.
//
// Merges two partial attention states per (token, head) row: out, lse = prefix (+) suffix in the monoid of attention states.
//
//   out        [n, H, D] T    written; may be prefix or suffix itself
//   out_lse    [H, n]    f32  written; optional; may be prefix_lse or suffix_lse itself
//   out_scale  [1]       f32  on the device; only for the fp8 kernels
//   prefix     [n, H, D] T    its rows at or past context_rows are not read
//   prefix_lse [H, n]    f32
//   suffix     [n, H, D] T
//   suffix_lse [H, n]    f32
//   context_rows         index, 0 … n: rows at or past it take the suffix alone
//
// B is the base of the lses, e by default. PrefixBase, SuffixBase and ResultBase give the bases of single lses, and MeetingBase the
// base of the merge. An lse of another base is converted by one product, which is rounded. Strides give the layout of an lse: an
// [n, H] tensor is passed as its transposed view. A row whose lse is -inf or +inf is empty, whatever its payload holds. If both
// sides are empty, the row becomes 0, -inf.
//
// merge_attn_states_copy: rows at or past context_rows are bitwise copies of the suffix's payload and lse. An lse of +inf is copied
// with its payload, too, whereas a merge would take it as an empty state (N2) and store 0, -inf. So the copy of the payload does
// not depend on the lse.
//
// merge_attn_states_fp8, merge_attn_states_copy_fp8: out is f8e4m3fn, saturate((prefix (+) suffix) * (1 / out_scale)). The product is
// rounded to nearest even and saturates at +-448; NaN stays NaN. 1 / out_scale is rounded to f32 once. The lse is not scaled.

!bf16_3d = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!f32_2d = memref<?x?xf32, strided<[?, ?], offset: ?>>

mlafix.kernel @merge_attn_states(
    %out: !bf16_3d {mlafix.access = "write", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %out_lse: !f32_2d {mlafix.access = "write", mlafix.dims = ["H", "n"], mlafix.optional},
    %prefix: !bf16_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %prefix_lse: !f32_2d {mlafix.access = "read", mlafix.dims = ["H", "n"]},
    %suffix: !bf16_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %suffix_lse: !f32_2d {mlafix.access = "read", mlafix.dims = ["H", "n"]},
    %context_rows: index {mlafix.at_most = "n"}) attributes {defaults = {B = "e", MeetingBase = "B", PrefixBase = "B", ResultBase = "B", SuffixBase = "B"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !bf16_3d
  %H = memref.dim %out, %c1 : !bf16_3d
  mlafix.forall (%t, %h) in (%n, %H) {
    %0 = arith.cmpi slt, %t, %context_rows : index
    %1 = mlafix.load_state %prefix[%t, %h] lse %prefix_lse[%h, %t] if %0 : !bf16_3d, !f32_2d -> <"D", "PrefixBase">
    %p = mlafix.rebase %1 : <"D", "PrefixBase"> -> <"D", "MeetingBase">
    %2 = mlafix.load_state %suffix[%t, %h] lse %suffix_lse[%h, %t] : !bf16_3d, !f32_2d -> <"D", "SuffixBase">
    %s = mlafix.rebase %2 : <"D", "SuffixBase"> -> <"D", "MeetingBase">
    %3 = mlafix.merge %p, %s : <"D", "MeetingBase">
    %4 = mlafix.rebase %3 : <"D", "MeetingBase"> -> <"D", "ResultBase">
    mlafix.store_state %4 to %out[%t, %h] lse %out_lse[%h, %t] : <"D", "ResultBase">, !bf16_3d, !f32_2d
  }
}
