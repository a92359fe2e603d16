// Merges a run of partial attention states per token: out[t], out_lse[t] = (+) over i in [indptr[t], indptr[t + 1]) of (v[i], s[i]).
//
//   out     [n, H, D]   T    written
//   out_lse [n, H]      f32  written; optional
//   v       [nnz, H, D] T    each row is read once
//   s       [nnz, H]    f32
//   indptr  [n1]        i32  n + 1 entries
//
// The lse is in base e, or in base 2 where B = 2. An empty run gives 0, -inf, and so does one that is no part of [0, nnz].

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>

mlafix.kernel @merge_states_ragged(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %out_lse: !lses {mlafix.dims = ["n", "H"], mlafix.access = "write", mlafix.optional},
    %v: !rows {mlafix.dims = ["nnz", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["nnz", "H"], mlafix.access = "read"},
    %indptr: !ints {mlafix.dims = ["n1"], mlafix.access = "read"}) attributes {defaults = {B = "e"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  %nnz = memref.dim %v, %c0 : !rows
  %n1 = memref.dim %indptr, %c0 : !ints
  mlafix.forall (%t, %h) in (%n, %H) {
    %next = arith.addi %t, %c1 : index
    %known = arith.cmpi slt, %next, %n1 : index
    %first = mlafix.load %indptr[%t] if %known : !ints -> i32
    %last = mlafix.load %indptr[%next] if %known : !ints -> i32
    %start = arith.index_cast %first : i32 to index
    %end = arith.index_cast %last : i32 to index
    %positive = arith.cmpi sle, %c0, %start : index
    %ordered = arith.cmpi sle, %start, %end : index
    %proper = arith.andi %positive, %ordered : i1
    %inside = arith.cmpi sle, %end, %nnz : index
    %sound = arith.andi %proper, %inside : i1
    %stop = arith.select %sound, %end, %start : index
    %none = mlafix.identity : !mlafix.state<"D", "B">
    %all = scf.for %i = %start to %stop step %c1 iter_args(%acc = %none) -> (!mlafix.state<"D", "B">) {
      %part = mlafix.load_state %v[%i, %h] lse %s[%i, %h] : !rows, !lses -> !mlafix.state<"D", "B">
      %sum = mlafix.merge %acc, %part : !mlafix.state<"D", "B">
      scf.yield %sum : !mlafix.state<"D", "B">
    }
    mlafix.store_state %all to %out[%t, %h] lse %out_lse[%t, %h] : !mlafix.state<"D", "B">, !rows, !lses
  }
}
