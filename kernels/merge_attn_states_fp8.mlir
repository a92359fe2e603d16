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

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!bytes = memref<?x?x?xf8E4M3FN, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!one = memref<1xf32, strided<[1], offset: ?>>

mlafix.kernel @merge_attn_states_fp8(
    %out: !bytes {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %out_lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "write", mlafix.optional},
    %out_scale: !one {mlafix.dims = ["one"], mlafix.access = "read"},
    %prefix: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %prefix_lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read"},
    %suffix: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %suffix_lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read"},
    %context_rows: index {mlafix.at_most = "n"}) attributes {defaults = {B = "e"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !bytes
  %H = memref.dim %out, %c1 : !bytes
  mlafix.forall (%t, %h) in (%n, %H) {
    %scale = mlafix.load %out_scale[%c0] : !one -> f32
    %in_context = arith.cmpi slt, %t, %context_rows : index
    %p = mlafix.load_state %prefix[%t, %h] lse %prefix_lse[%h, %t] if %in_context : !rows, !lses -> !mlafix.state<"D", "B">
    %s = mlafix.load_state %suffix[%t, %h] lse %suffix_lse[%h, %t] : !rows, !lses -> !mlafix.state<"D", "B">
    %m = mlafix.merge %p, %s : !mlafix.state<"D", "B">
    mlafix.store_state %m to %out[%t, %h] scale %scale lse %out_lse[%h, %t] : !mlafix.state<"D", "B">, !bytes, !lses
  }
}
