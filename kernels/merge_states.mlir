// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/merge_many.py: edit that.
//
// Merges the k partial attention states of each (token, head) row: out, out_lse = (+) over j of (v[:, j], s[:, j]).
//
//   out     [n, H, D]    T    written
//   out_lse [n, H]       f32  written; optional
//   v       [n, k, H, D] T    each row is read once
//   s       [n, k, H]    f32
//
// B is the base of the lses, e by default. ResultBase is the base of out_lse, B by default. k may be 0, which gives
// 0, -inf. Binding it (k = 4) generates code for that k only.

!bf16_3d = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!f32_2d = memref<?x?xf32, strided<[?, ?], offset: ?>>
!bf16_4d = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1], offset: ?>>
!f32_3d = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>

mlafix.kernel @merge_states(
    %out: !bf16_3d {mlafix.access = "write", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %out_lse: !f32_2d {mlafix.access = "write", mlafix.dims = ["n", "H"], mlafix.optional},
    %v: !bf16_4d {mlafix.access = "read", mlafix.dims = ["n", "k", "H", "D"], mlafix.dtype = "T"},
    %s: !f32_3d {mlafix.access = "read", mlafix.dims = ["n", "k", "H"]}) attributes {defaults = {B = "e", ResultBase = "B"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !bf16_3d
  %H = memref.dim %out, %c1 : !bf16_3d
  %k = memref.dim %v, %c1 : !bf16_4d
  mlafix.forall (%t, %h) in (%n, %H) {
    %merged = mlafix.identity : <"D", "B">
    %merged_2 = scf.for %j = %c0 to %k step %c1 iter_args(%merged_3 = %merged) -> (!mlafix.state<"D", "B">) {
      %0 = mlafix.load_state %v[%t, %j, %h] lse %s[%t, %j, %h] : !bf16_4d, !f32_3d -> <"D", "B">
      %merged_4 = mlafix.merge %merged_3, %0 : <"D", "B">
      scf.yield %merged_4 : !mlafix.state<"D", "B">
    }
    %1 = mlafix.rebase %merged_2 : <"D", "B"> -> <"D", "ResultBase">
    mlafix.store_state %1 to %out[%t, %h] lse %out_lse[%t, %h] : <"D", "ResultBase">, !bf16_3d, !f32_2d
  }
}
