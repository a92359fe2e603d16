// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/merge_many.py: edit that.
//
// Combines the partial results of attention over s splits of the keys: out, out_lse = (+) over i of (partial[i], partial_lse[i]).
//
//   out         [b, l, H, D]    O    written
//   out_lse     [b, l, H]       f32  written; optional
//   partial     [s, b, l, H, D] T    each row is read once; f32 as a rule
//   partial_lse [s, b, l, H]    f32
//
// B is the base of the lses, e by default. ResultBase is the base of out_lse, B by default. s may be 0, which gives
// 0, -inf. Binding it (s = 4) generates code for that s only.

!bf16_4d = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1], offset: ?>>
!f32_3d = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
!f32_5d = memref<?x?x?x?x?xf32, strided<[?, ?, ?, ?, 1], offset: ?>>
!f32_4d = memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>

mlafix.kernel @combine_split_kv(
    %out: !bf16_4d {mlafix.access = "write", mlafix.dims = ["b", "l", "H", "D"], mlafix.dtype = "O"},
    %out_lse: !f32_3d {mlafix.access = "write", mlafix.dims = ["b", "l", "H"], mlafix.optional},
    %partial: !f32_5d {mlafix.access = "read", mlafix.dims = ["s", "b", "l", "H", "D"], mlafix.dtype = "T"},
    %partial_lse: !f32_4d {mlafix.access = "read", mlafix.dims = ["s", "b", "l", "H"]}) attributes {defaults = {B = "e", ResultBase = "B", T = "f32"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = memref.dim %out, %c0 : !bf16_4d
  %l = memref.dim %out, %c1 : !bf16_4d
  %H = memref.dim %out, %c2 : !bf16_4d
  %s = memref.dim %partial, %c0 : !f32_5d
  mlafix.forall (%i, %j, %h) in (%b, %l, %H) {
    %merged = mlafix.identity : <"D", "B">
    %merged_2 = scf.for %k = %c0 to %s step %c1 iter_args(%merged_3 = %merged) -> (!mlafix.state<"D", "B">) {
      %0 = mlafix.load_state %partial[%k, %i, %j, %h] lse %partial_lse[%k, %i, %j, %h] : !f32_5d, !f32_4d -> <"D", "B">
      %merged_4 = mlafix.merge %merged_3, %0 : <"D", "B">
      scf.yield %merged_4 : !mlafix.state<"D", "B">
    }
    %1 = mlafix.rebase %merged_2 : <"D", "B"> -> <"D", "ResultBase">
    mlafix.store_state %1 to %out[%i, %j, %h] lse %out_lse[%i, %j, %h] : <"D", "ResultBase">, !bf16_4d, !f32_3d
  }
}
