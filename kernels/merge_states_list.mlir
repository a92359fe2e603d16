// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/merge_many.py: edit that.
//
// Merges up to eight partial attention states in separate buffers: out, out_lse = (v0, s0) (+) … (+) (v7, s7).
//
//   out     [n, H, D] T    written; may be one of v0 … v7 itself
//   out_lse [n, H]    f32  written; optional; may be one of s0 … s7 itself
//   v0 … v7 [n, H, D] T    all but v0 optional; omitted states are ignored
//   s0 … s7 [n, H]    f32  likewise
//
// B is the base of the lses, e by default. ResultBase is the base of out_lse, B by default.

!bf16_3d = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!f32_2d = memref<?x?xf32, strided<[?, ?], offset: ?>>

mlafix.kernel @merge_states_list(
    %out: !bf16_3d {mlafix.access = "write", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %out_lse: !f32_2d {mlafix.access = "write", mlafix.dims = ["n", "H"], mlafix.optional},
    %v0: !bf16_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %s0: !f32_2d {mlafix.access = "read", mlafix.dims = ["n", "H"]},
    %v1: !bf16_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.optional},
    %s1: !f32_2d {mlafix.access = "read", mlafix.dims = ["n", "H"], mlafix.optional},
    %v2: !bf16_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.optional},
    %s2: !f32_2d {mlafix.access = "read", mlafix.dims = ["n", "H"], mlafix.optional},
    %v3: !bf16_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.optional},
    %s3: !f32_2d {mlafix.access = "read", mlafix.dims = ["n", "H"], mlafix.optional},
    %v4: !bf16_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.optional},
    %s4: !f32_2d {mlafix.access = "read", mlafix.dims = ["n", "H"], mlafix.optional},
    %v5: !bf16_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.optional},
    %s5: !f32_2d {mlafix.access = "read", mlafix.dims = ["n", "H"], mlafix.optional},
    %v6: !bf16_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.optional},
    %s6: !f32_2d {mlafix.access = "read", mlafix.dims = ["n", "H"], mlafix.optional},
    %v7: !bf16_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.optional},
    %s7: !f32_2d {mlafix.access = "read", mlafix.dims = ["n", "H"], mlafix.optional}) attributes {defaults = {B = "e", ResultBase = "B"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !bf16_3d
  %H = memref.dim %out, %c1 : !bf16_3d
  mlafix.forall (%t, %h) in (%n, %H) {
    %merged = mlafix.load_state %v0[%t, %h] lse %s0[%t, %h] : !bf16_3d, !f32_2d -> <"D", "B">
    %0 = mlafix.load_state %v1[%t, %h] lse %s1[%t, %h] : !bf16_3d, !f32_2d -> <"D", "B">
    %merged_2 = mlafix.merge %merged, %0 : <"D", "B">
    %1 = mlafix.load_state %v2[%t, %h] lse %s2[%t, %h] : !bf16_3d, !f32_2d -> <"D", "B">
    %merged_3 = mlafix.merge %merged_2, %1 : <"D", "B">
    %2 = mlafix.load_state %v3[%t, %h] lse %s3[%t, %h] : !bf16_3d, !f32_2d -> <"D", "B">
    %merged_4 = mlafix.merge %merged_3, %2 : <"D", "B">
    %3 = mlafix.load_state %v4[%t, %h] lse %s4[%t, %h] : !bf16_3d, !f32_2d -> <"D", "B">
    %merged_5 = mlafix.merge %merged_4, %3 : <"D", "B">
    %4 = mlafix.load_state %v5[%t, %h] lse %s5[%t, %h] : !bf16_3d, !f32_2d -> <"D", "B">
    %merged_6 = mlafix.merge %merged_5, %4 : <"D", "B">
    %5 = mlafix.load_state %v6[%t, %h] lse %s6[%t, %h] : !bf16_3d, !f32_2d -> <"D", "B">
    %merged_7 = mlafix.merge %merged_6, %5 : <"D", "B">
    %6 = mlafix.load_state %v7[%t, %h] lse %s7[%t, %h] : !bf16_3d, !f32_2d -> <"D", "B">
    %merged_8 = mlafix.merge %merged_7, %6 : <"D", "B">
    %7 = mlafix.rebase %merged_8 : <"D", "B"> -> <"D", "ResultBase">
    mlafix.store_state %7 to %out[%t, %h] lse %out_lse[%t, %h] : <"D", "ResultBase">, !bf16_3d, !f32_2d
  }
}
