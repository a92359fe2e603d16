// Merges two partial attention states per (token, head) row and quantises the payload, as merge_attn_states_fp8 does; rows at or past
// context_rows take the suffix whatever its lse is: out = saturate(suffix * (1 / out_scale)), and the lse bit for bit.
//
//   out        [n, H, D] f8e4m3fn  written; rounds to nearest even, saturates at +-448, NaN stays NaN
//   out_lse    [H, n]    f32       written; optional; may be prefix_lse or suffix_lse itself
//   out_scale  [1]       f32       on the device
//   prefix     [n, H, D] T         its rows at or past context_rows are not read
//   prefix_lse [H, n]    f32
//   suffix     [n, H, D] T
//   suffix_lse [H, n]    f32
//   context_rows         index, 0 … n: rows at or past it are the suffix's
//
// The lse is in base e, or in base 2 where B = 2; it is not scaled. 1 / out_scale is rounded to f32 once.

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!bytes = memref<?x?x?xf8E4M3FN, strided<[?, ?, 1], offset: ?>>
!one = memref<1xf32, strided<[1], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>

mlafix.kernel @merge_attn_states_copy_fp8(
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
    scf.if %in_context {
      %p = mlafix.load_state %prefix[%t, %h] lse %prefix_lse[%h, %t] : !rows, !lses -> !mlafix.state<"D", "B">
      %s = mlafix.load_state %suffix[%t, %h] lse %suffix_lse[%h, %t] : !rows, !lses -> !mlafix.state<"D", "B">
      %m = mlafix.merge %p, %s : !mlafix.state<"D", "B">
      mlafix.store_state %m to %out[%t, %h] scale %scale lse %out_lse[%h, %t] : !mlafix.state<"D", "B">, !bytes, !lses
    } else {
      %row = mlafix.load %suffix[%t, %h] : !rows -> !tile
      %lse = mlafix.load %suffix_lse[%h, %t] : !lses -> f32
      %one = arith.constant 1.0 : f32
      %inverse = arith.divf %one, %scale : f32
      %factor = mlafix.splat %inverse : f32 -> !tile
      %scaled = arith.mulf %row, %factor : !tile
      mlafix.store %scaled, %out[%t, %h] : !tile, !bytes
      mlafix.store %lse, %out_lse[%h, %t] : f32, !lses
    }
  }
}
