// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/blank.py: edit that.
//
// Marks the rows of requests whose context is empty: for every request b with context_start_loc[b + 1] <= context_start_loc[b],
// lse = -inf on the rows [query_start_loc[b], query_start_loc[b + 1]).
//
//   lse               [H, n] f32  rows of requests without context are written, no others
//   query_start_loc   [b1]   i32  b + 1 entries: the first row of each request, and the end of the last request
//   context_start_loc [b1]   I    b + 1 entries: the start of each request's context, and the end of the last one; i32 or i64
//
// The cost is that of the written rows and of one scan of context_start_loc. A request counts only if its rows are part of [0, n].

!f32_2d = memref<?x?xf32, strided<[?, ?], offset: ?>>
!i32_1d = memref<?xi32, strided<[?], offset: ?>>

mlafix.kernel @mask_empty_context_lse(
    %lse: !f32_2d {mlafix.access = "update", mlafix.dims = ["H", "n"]},
    %query_start_loc: !i32_1d {mlafix.access = "read", mlafix.dims = ["b1"]},
    %context_start_loc: !i32_1d {mlafix.access = "read", mlafix.dims = ["b1"], mlafix.dtype = "I"}) attributes {defaults = {I = "i32"}} {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %minus_inf = arith.constant 0xFF800000 : f32
  %n = memref.dim %lse, %c1 : !f32_2d
  %H = memref.dim %lse, %c0 : !f32_2d
  %b1 = memref.dim %context_start_loc, %c0 : !i32_1d
  mlafix.ragged_forall (%b, %t, %h) in (%query_start_loc, %n, %H) : !i32_1d where {
    %0 = arith.addi %b, %c1 : index
    %known = arith.cmpi slt, %0, %b1 : index
    %1 = mlafix.load %context_start_loc[%b] if %known : !i32_1d -> i64
    %2 = arith.addi %b, %c1 : index
    %3 = mlafix.load %context_start_loc[%2] if %known : !i32_1d -> i64
    %4 = arith.cmpi sle, %3, %1 : i64
    %5 = arith.andi %known, %4 : i1
    mlafix.yield %5 : i1
  } do {
    mlafix.store %minus_inf, %lse[%h, %t] : f32, !f32_2d
  }
}
