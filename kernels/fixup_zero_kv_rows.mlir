// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/blank.py: edit that.
//
// Blanks the rows of sequences that had no keys: for every sequence b with kv_lens[b] <= 0, the rows
// [cu_seqlens[b], cu_seqlens[b + 1]) become the identity, out = +0.0 and lse = -inf. Attention kernels leave such rows undefined.
//
//   out        [n, H, D] T    rows of sequences without keys are written, no others
//   lse        [H, n]    f32  likewise
//   kv_lens    [b]       i32
//   cu_seqlens [b1]      i32  b + 1 entries: the first row of each sequence, and the end of the last sequence
//
// The cost is that of the blanked rows and of one scan of kv_lens. A sequence counts only if 0 <= start <= end <= n.

!bf16_3d = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!f32_2d = memref<?x?xf32, strided<[?, ?], offset: ?>>
!i32_1d = memref<?xi32, strided<[?], offset: ?>>

mlafix.kernel @fixup_zero_kv_rows(
    %out: !bf16_3d {mlafix.access = "update", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %lse: !f32_2d {mlafix.access = "update", mlafix.dims = ["H", "n"]},
    %kv_lens: !i32_1d {mlafix.access = "read", mlafix.dims = ["b"]},
    %cu_seqlens: !i32_1d {mlafix.access = "read", mlafix.dims = ["b1"]}) attributes {defaults = {B = "e"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1_i32 = arith.constant 1 : i32
  %c0_i32 = arith.constant 0 : i32
  %b_2 = memref.dim %kv_lens, %c0 : !i32_1d
  %n = memref.dim %out, %c0 : !bf16_3d
  %H = memref.dim %out, %c1 : !bf16_3d
  mlafix.ragged_forall (%b, %t, %h) in (%cu_seqlens, %n, %H) : !i32_1d where {
    %0 = arith.cmpi slt, %b, %b_2 : index
    %1 = mlafix.load %kv_lens[%b] if %0 else %c1_i32 : !i32_1d -> i32
    %2 = arith.cmpi sle, %1, %c0_i32 : i32
    mlafix.yield %2 : i1
  } do {
    %3 = mlafix.identity : <"D", "B">
    mlafix.store_state %3 to %out[%t, %h] lse %lse[%h, %t] : <"D", "B">, !bf16_3d, !f32_2d
  }
}
