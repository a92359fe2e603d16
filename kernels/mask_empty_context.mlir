// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/blank.py: edit that.
//
// Blanks the rows of requests whose context is empty: for every request b with context_start_loc[b + 1] <= context_start_loc[b],
// out = +0.0 and lse = -inf on the rows [query_start_loc[b], query_start_loc[b + 1]).
//
//   out               [n, H, D] T    rows of requests without context are written, no others
//   lse               [H, n]    f32  likewise; optional
//   query_start_loc   [b1]      i32  b + 1 entries: the first row of each request, and the end of the last request
//   context_start_loc [b1]      I    b + 1 entries: the start of each request's context, and the end of the last one; i32 or i64
//
// The cost is that of the blanked rows and of one scan of context_start_loc. A request counts only if its rows are part of [0, n].

!bf16_3d = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!f32_2d = memref<?x?xf32, strided<[?, ?], offset: ?>>
!i32_1d = memref<?xi32, strided<[?], offset: ?>>

mlafix.kernel @mask_empty_context(
    %out: !bf16_3d {mlafix.access = "update", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %lse: !f32_2d {mlafix.access = "update", mlafix.dims = ["H", "n"], mlafix.optional},
    %query_start_loc: !i32_1d {mlafix.access = "read", mlafix.dims = ["b1"]},
    %context_start_loc: !i32_1d {mlafix.access = "read", mlafix.dims = ["b1"], mlafix.dtype = "I"}) attributes {defaults = {B = "e", I = "i32"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !bf16_3d
  %H = memref.dim %out, %c1 : !bf16_3d
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
    %6 = mlafix.identity : <"D", "B">
    mlafix.store_state %6 to %out[%t, %h] lse %lse[%h, %t] : <"D", "B">, !bf16_3d, !f32_2d
  }
}
