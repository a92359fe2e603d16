// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/merge_many.py: edit that.
//
// Merges a run of partial attention states per token: out[t], out_lse[t] = (+) over i in [indptr[t], indptr[t + 1]) of (v[i], s[i]).
//
//   out     [n, H, D]   T    written
//   out_lse [n, H]      f32  written; optional
//   v       [nnz, H, D] T    each row is read once
//   s       [nnz, H]    f32
//   indptr  [n1]        i32  n + 1 entries
//
// B is the base of the lses, e by default. ResultBase is the base of out_lse, B by default. An empty run gives 0, -inf,
// and so does a run that is not part of [0, nnz].

!bf16_3d = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!f32_2d = memref<?x?xf32, strided<[?, ?], offset: ?>>
!i32_1d = memref<?xi32, strided<[?], offset: ?>>

mlafix.kernel @merge_states_ragged(
    %out: !bf16_3d {mlafix.access = "write", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %out_lse: !f32_2d {mlafix.access = "write", mlafix.dims = ["n", "H"], mlafix.optional},
    %v: !bf16_3d {mlafix.access = "read", mlafix.dims = ["nnz", "H", "D"], mlafix.dtype = "T"},
    %s: !f32_2d {mlafix.access = "read", mlafix.dims = ["nnz", "H"]},
    %indptr: !i32_1d {mlafix.access = "read", mlafix.dims = ["n1"]}) attributes {defaults = {B = "e", ResultBase = "B"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %nnz = memref.dim %v, %c0 : !bf16_3d
  %n1 = memref.dim %indptr, %c0 : !i32_1d
  %n = memref.dim %out, %c0 : !bf16_3d
  %H = memref.dim %out, %c1 : !bf16_3d
  mlafix.forall (%t, %h) in (%n, %H) {
    %following = arith.addi %t, %c1 : index
    %known = arith.cmpi slt, %following, %n1 : index
    %first = mlafix.load %indptr[%t] if %known : !i32_1d -> i32
    %last = mlafix.load %indptr[%following] if %known : !i32_1d -> i32
    %start = arith.index_cast %first : i32 to index
    %end = arith.index_cast %last : i32 to index
    %0 = arith.cmpi sle, %c0, %start : index
    %1 = arith.cmpi sle, %start, %end : index
    %2 = arith.andi %0, %1 : i1
    %3 = arith.cmpi sle, %end, %nnz : index
    %sound = arith.andi %2, %3 : i1
    %merged = mlafix.identity : <"D", "B">
    %4 = arith.select %sound, %end, %start : index
    %merged_2 = scf.for %i = %start to %4 step %c1 iter_args(%merged_3 = %merged) -> (!mlafix.state<"D", "B">) {
      %5 = mlafix.load_state %v[%i, %h] lse %s[%i, %h] : !bf16_3d, !f32_2d -> <"D", "B">
      %merged_4 = mlafix.merge %merged_3, %5 : <"D", "B">
      scf.yield %merged_4 : !mlafix.state<"D", "B">
    }
    %6 = mlafix.rebase %merged_2 : <"D", "B"> -> <"D", "ResultBase">
    mlafix.store_state %6 to %out[%t, %h] lse %out_lse[%t, %h] : <"D", "ResultBase">, !bf16_3d, !f32_2d
  }
}
