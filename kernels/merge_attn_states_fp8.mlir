// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/merge.py: edit that.
//
// Merges two partial attention states per (token, head) row, as merge_attn_states does, and quantises the payload to fp8:
// out = saturate((prefix (+) suffix) * (1 / out_scale)).
//
//   out        [n, H, D] f8e4m3fn  written; rounds to nearest even, saturates at +-448, NaN stays NaN
//   out_lse    [H, n]    f32       written; optional; may be prefix_lse or suffix_lse itself
//   out_scale  [1]       f32       on the device
//   prefix     [n, H, D] T         its rows at or past context_rows are not read
//   prefix_lse [H, n]    f32
//   suffix     [n, H, D] T
//   suffix_lse [H, n]    f32
//   context_rows         index, 0 … n: rows at or past it take the suffix alone
//
// The lse is in base e, or in base 2 where B = 2; it is not scaled. 1 / out_scale is rounded to f32 once.

!f8E4M3FN_3d = memref<?x?x?xf8E4M3FN, strided<[?, ?, 1], offset: ?>>
!f32_2d = memref<?x?xf32, strided<[?, ?], offset: ?>>
!f32_1d = memref<1xf32, strided<[1], offset: ?>>
!bf16_3d = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>

mlafix.kernel @merge_attn_states_fp8(
    %out: !f8E4M3FN_3d {mlafix.access = "write", mlafix.dims = ["n", "H", "D"]},
    %out_lse: !f32_2d {mlafix.access = "write", mlafix.dims = ["H", "n"], mlafix.optional},
    %out_scale: !f32_1d {mlafix.access = "read", mlafix.dims = ["one"]},
    %prefix: !bf16_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %prefix_lse: !f32_2d {mlafix.access = "read", mlafix.dims = ["H", "n"]},
    %suffix: !bf16_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %suffix_lse: !f32_2d {mlafix.access = "read", mlafix.dims = ["H", "n"]},
    %context_rows: index {mlafix.at_most = "n"}) attributes {defaults = {B = "e", MeetingBase = "B", PrefixBase = "B", ResultBase = "B", SuffixBase = "B"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !f8E4M3FN_3d
  %H = memref.dim %out, %c1 : !f8E4M3FN_3d
  mlafix.forall (%t, %h) in (%n, %H) {
    %scale = mlafix.load %out_scale[%c0] : !f32_1d -> f32
    %0 = arith.cmpi slt, %t, %context_rows : index
    %1 = mlafix.load_state %prefix[%t, %h] lse %prefix_lse[%h, %t] if %0 : !bf16_3d, !f32_2d -> <"D", "PrefixBase">
    %p = mlafix.rebase %1 : <"D", "PrefixBase"> -> <"D", "MeetingBase">
    %2 = mlafix.load_state %suffix[%t, %h] lse %suffix_lse[%h, %t] : !bf16_3d, !f32_2d -> <"D", "SuffixBase">
    %s = mlafix.rebase %2 : <"D", "SuffixBase"> -> <"D", "MeetingBase">
    %3 = mlafix.merge %p, %s : <"D", "MeetingBase">
    %4 = mlafix.rebase %3 : <"D", "MeetingBase"> -> <"D", "ResultBase">
    mlafix.store_state %4 to %out[%t, %h] scale %scale lse %out_lse[%h, %t] : <"D", "ResultBase">, !f8E4M3FN_3d, !f32_2d
  }
}
