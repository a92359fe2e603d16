// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/merge.py: edit that.
//
// Merges two partial attention states with softmax statistics, (max, sum) in base e, in place of log-sum-exps:
// lse = softmax_scale * max + log(sum). max is the maximum of the scores before scaling.
//
//   out          [n, H, D] T    written; may be prefix or suffix itself
//   out_stats    [n, H, 2] f32  written; optional; may be prefix_stats or suffix_stats itself
//   prefix       [n, H, D] T
//   prefix_stats [n, H, 2] f32
//   suffix       [n, H, D] T
//   suffix_stats [n, H, 2] f32
//   softmax_scale          f32, positive
//
// A row whose maximum is infinite or whose sum is 0 is empty, whatever its payload holds. If both sides are empty, the row
// becomes 0, (-inf, 0).

!bf16_3d = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!f32_3d = memref<?x?x2xf32, strided<[?, ?, ?], offset: ?>>

mlafix.kernel @merge_attn_stats(
    %out: !bf16_3d {mlafix.access = "write", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %out_stats: !f32_3d {mlafix.access = "write", mlafix.dims = ["n", "H", "two"], mlafix.optional},
    %prefix: !bf16_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %prefix_stats: !f32_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "two"]},
    %suffix: !bf16_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %suffix_stats: !f32_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "two"]},
    %softmax_scale: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %inf = arith.constant 0x7F800000 : f32
  %f0 = arith.constant 0.000000e+00 : f32
  %minus_inf = arith.constant 0xFF800000 : f32
  %n = memref.dim %out, %c0 : !bf16_3d
  %H = memref.dim %out, %c1 : !bf16_3d
  mlafix.forall (%t, %h) in (%n, %H) {
    %p = mlafix.load %prefix[%t, %h] : !bf16_3d -> tensor<?xf32, #mlafix.dim<"D">>
    %s = mlafix.load %suffix[%t, %h] : !bf16_3d -> tensor<?xf32, #mlafix.dim<"D">>
    %p_max = mlafix.load %prefix_stats[%t, %h, %c0] : !f32_3d -> f32
    %s_max = mlafix.load %suffix_stats[%t, %h, %c0] : !f32_3d -> f32
    %p_sum = mlafix.load %prefix_stats[%t, %h, %c1] : !f32_3d -> f32
    %s_sum = mlafix.load %suffix_stats[%t, %h, %c1] : !f32_3d -> f32
    %0 = math.absf %p_max : f32
    %infinite = arith.cmpf oeq, %0, %inf : f32
    %1 = arith.cmpf oeq, %p_sum, %f0 : f32
    %2 = arith.ori %infinite, %1 : i1
    %3 = math.absf %s_max : f32
    %infinite_2 = arith.cmpf oeq, %3, %inf : f32
    %4 = arith.cmpf oeq, %s_sum, %f0 : f32
    %5 = arith.ori %infinite_2, %4 : i1
    %6 = arith.select %2, %minus_inf, %p_max : f32
    %7 = arith.select %5, %minus_inf, %s_max : f32
    %largest = arith.maximumf %6, %7 : f32
    %8 = arith.subf %p_max, %largest : f32
    %p_scaled = arith.mulf %8, %softmax_scale : f32
    %9 = arith.subf %s_max, %largest : f32
    %s_scaled = arith.mulf %9, %softmax_scale : f32
    %10 = math.log %p_sum : f32
    %11 = arith.addf %p_scaled, %10 : f32
    %p_lse = arith.select %2, %minus_inf, %11 : f32
    %12 = math.log %s_sum : f32
    %13 = arith.addf %s_scaled, %12 : f32
    %s_lse = arith.select %5, %minus_inf, %13 : f32
    %14 = mlafix.make_state %p lse %p_lse : tensor<?xf32, #mlafix.dim<"D">> -> <"D", e>
    %15 = mlafix.make_state %s lse %s_lse : tensor<?xf32, #mlafix.dim<"D">> -> <"D", e>
    %merged = mlafix.merge %14, %15 : <"D", e>
    %16 = math.exp %p_scaled : f32
    %17 = arith.mulf %p_sum, %16 : f32
    %p_part = arith.select %2, %f0, %17 : f32
    %18 = math.exp %s_scaled : f32
    %19 = arith.mulf %s_sum, %18 : f32
    %s_part = arith.select %5, %f0, %19 : f32
    mlafix.store_state %merged to %out[%t, %h] : <"D", e>, !bf16_3d
    mlafix.store %largest, %out_stats[%t, %h, %c0] : f32, !f32_3d
    %20 = arith.addf %p_part, %s_part : f32
    mlafix.store %20, %out_stats[%t, %h, %c1] : f32, !f32_3d
  }
}
