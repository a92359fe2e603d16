// Blanks the rows of requests whose context is empty: for every request b with context_start_loc[b + 1] <= context_start_loc[b],
// out = +0.0 and lse = -inf on the rows [query_start_loc[b], query_start_loc[b + 1]).
//
//   out               [n, H, D] T    rows of requests without context are written, no others
//   lse               [H, n]    f32  likewise; optional
//   query_start_loc   [b1]      i32  b + 1 entries: where each request's rows begin, and where the last one's end
//   context_start_loc [b1]      I    b + 1 entries: where each request's context begins, and where the last one's ends; i32 or i64
//
// The cost follows the rows blanked, plus one scan of context_start_loc. A request counts only if its rows are part of [0, n].

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>

mlafix.kernel @mask_empty_context(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"},
    %lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "update", mlafix.optional},
    %query_start_loc: !ints {mlafix.dims = ["b1"], mlafix.access = "read"},
    %context_start_loc: !ints {mlafix.dims = ["b1"], mlafix.dtype = "I", mlafix.access = "read"}) attributes {defaults = {B = "e", I = "i32"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  %b1 = memref.dim %context_start_loc, %c0 : !ints
  mlafix.ragged_forall (%b, %t, %h) in (%query_start_loc, %n, %H) : !ints where {
    %next = arith.addi %b, %c1 : index
    %known = arith.cmpi slt, %next, %b1 : index
    %first = mlafix.load %context_start_loc[%b] if %known : !ints -> i64
    %last = mlafix.load %context_start_loc[%next] if %known : !ints -> i64
    %empty = arith.cmpi sle, %last, %first : i64
    %dead = arith.andi %known, %empty : i1
    mlafix.yield %dead : i1
  } do {
    %none = mlafix.identity : !mlafix.state<"D", "B">
    mlafix.store_state %none to %out[%t, %h] lse %lse[%h, %t] : !mlafix.state<"D", "B">, !rows, !lses
  }
}
