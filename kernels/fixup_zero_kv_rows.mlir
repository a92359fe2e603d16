// Blanks the rows of sequences that had no keys: for every sequence b with kv_lens[b] <= 0, the rows
// [cu_seqlens[b], cu_seqlens[b + 1]) become the identity, out = +0.0 and lse = -inf. Attention kernels leave such rows undefined.
//
//   out        [n, H, D] T    rows of sequences without keys are written, no others
//   lse        [H, n]    f32  likewise
//   kv_lens    [b]       i32
//   cu_seqlens [b1]      i32  b + 1 entries: where each sequence's rows begin, and where the last one's end
//
// The cost follows the rows blanked, plus one scan of kv_lens. A sequence counts only if 0 <= start <= end <= n.

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>

mlafix.kernel @fixup_zero_kv_rows(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"},
    %lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "update"},
    %kv_lens: !ints {mlafix.dims = ["b"], mlafix.access = "read"},
    %cu_seqlens: !ints {mlafix.dims = ["b1"], mlafix.access = "read"}) attributes {defaults = {B = "e"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  %num_seqs = memref.dim %kv_lens, %c0 : !ints
  mlafix.ragged_forall (%b, %t, %h) in (%cu_seqlens, %n, %H) : !ints where {
    %alive = arith.constant 1 : i32
    %none = arith.constant 0 : i32
    %known = arith.cmpi slt, %b, %num_seqs : index
    %len = mlafix.load %kv_lens[%b] if %known else %alive : !ints -> i32
    %dead = arith.cmpi sle, %len, %none : i32
    mlafix.yield %dead : i1
  } do {
    %empty = mlafix.identity : !mlafix.state<"D", "B">
    mlafix.store_state %empty to %out[%t, %h] lse %lse[%h, %t] : !mlafix.state<"D", "B">, !rows, !lses
  }
}
