// Merges two partial attention states whose log-sum-exp is held as softmax statistics, (max, sum) in base e:
// lse = softmax_scale * max + log(sum). The maximum is that of the scores before they are scaled.
//
//   out          [n, H, D] T    written; may be prefix or suffix itself
//   out_stats    [n, H, 2] f32  written; optional
//   prefix       [n, H, D] T
//   prefix_stats [n, H, 2] f32
//   suffix       [n, H, D] T
//   suffix_stats [n, H, 2] f32
//   softmax_scale          f32, positive
//
// A row whose maximum is infinite or whose sum is 0 holds nothing, whatever its payload is; a row in which both sides hold nothing
// becomes 0, (-inf, 0).

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!stats = memref<?x?x2xf32, strided<[?, ?, ?], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>

mlafix.kernel @merge_attn_stats(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %out_stats: !stats {mlafix.dims = ["n", "H", "two"], mlafix.access = "write", mlafix.optional},
    %prefix: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %prefix_stats: !stats {mlafix.dims = ["n", "H", "two"], mlafix.access = "read"},
    %suffix: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %suffix_stats: !stats {mlafix.dims = ["n", "H", "two"], mlafix.access = "read"},
    %softmax_scale: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %zero = arith.constant 0.0 : f32
    %inf = arith.constant 0x7F800000 : f32
    %none = arith.constant 0xFF800000 : f32
    %p = mlafix.load %prefix[%t, %h] : !rows -> !tile
    %s = mlafix.load %suffix[%t, %h] : !rows -> !tile
    %p_max = mlafix.load %prefix_stats[%t, %h, %c0] : !stats -> f32
    %s_max = mlafix.load %suffix_stats[%t, %h, %c0] : !stats -> f32
    %p_sum = mlafix.load %prefix_stats[%t, %h, %c1] : !stats -> f32
    %s_sum = mlafix.load %suffix_stats[%t, %h, %c1] : !stats -> f32

    // Of a side that holds nothing, neither number counts.
    %p_abs = math.absf %p_max : f32
    %s_abs = math.absf %s_max : f32
    %p_inf = arith.cmpf oeq, %p_abs, %inf : f32
    %s_inf = arith.cmpf oeq, %s_abs, %inf : f32
    %p_zero = arith.cmpf oeq, %p_sum, %zero : f32
    %s_zero = arith.cmpf oeq, %s_sum, %zero : f32
    %p_empty = arith.ori %p_inf, %p_zero : i1
    %s_empty = arith.ori %s_inf, %s_zero : i1
    %p_live = arith.select %p_empty, %none, %p_max : f32
    %s_live = arith.select %s_empty, %none, %s_max : f32
    %max = arith.maximumf %p_live, %s_live : f32

    // The lse of both sides relative to the common maximum: small numbers, which keep their precision.
    %p_below = arith.subf %p_max, %max : f32
    %s_below = arith.subf %s_max, %max : f32
    %p_scaled = arith.mulf %p_below, %softmax_scale : f32
    %s_scaled = arith.mulf %s_below, %softmax_scale : f32
    %p_log = math.log %p_sum : f32
    %s_log = math.log %s_sum : f32
    %p_rel = arith.addf %p_scaled, %p_log : f32
    %s_rel = arith.addf %s_scaled, %s_log : f32
    %p_lse = arith.select %p_empty, %none, %p_rel : f32
    %s_lse = arith.select %s_empty, %none, %s_rel : f32
    %p_state = mlafix.make_state %p lse %p_lse : !tile -> !mlafix.state<"D", e>
    %s_state = mlafix.make_state %s lse %s_lse : !tile -> !mlafix.state<"D", e>
    %m = mlafix.merge %p_state, %s_state : !mlafix.state<"D", e>

    %p_weight = math.exp %p_scaled : f32
    %s_weight = math.exp %s_scaled : f32
    %p_term = arith.mulf %p_sum, %p_weight : f32
    %s_term = arith.mulf %s_sum, %s_weight : f32
    %p_part = arith.select %p_empty, %zero, %p_term : f32
    %s_part = arith.select %s_empty, %zero, %s_term : f32
    %sum = arith.addf %p_part, %s_part : f32

    mlafix.store_state %m to %out[%t, %h] : !mlafix.state<"D", e>, !rows
    mlafix.store %max, %out_stats[%t, %h, %c0] : f32, !stats
    mlafix.store %sum, %out_stats[%t, %h, %c1] : f32, !stats
  }
}
