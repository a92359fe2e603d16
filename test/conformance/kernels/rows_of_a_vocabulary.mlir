// The probabilities of a row of logits, their running sums, the row's log-sum-exp and the index of its greatest element.
// The build compiles it for the conformance program, which calls it (VocabularyTest.cpp).
//
//   y, sums [n, V] f32  written
//   lse     [n] f32     written
//   best    [n] i32     written
//   x       [n, V] T    read

!fs = memref<?x?xf32, strided<[?, 1], offset: ?>>
!xs = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>
!ints = memref<?xi32, strided<[1], offset: ?>>
!row = tensor<?xf32, #mlafix.dim<"V">>
mlafix.kernel @rows_of_a_vocabulary(
    %y: !fs {mlafix.dims = ["n", "V"], mlafix.access = "write"},
    %sums: !fs {mlafix.dims = ["n", "V"], mlafix.access = "write"},
    %lse: !lses {mlafix.dims = ["n"], mlafix.access = "write"},
    %best: !ints {mlafix.dims = ["n"], mlafix.access = "write"},
    %x: !xs {mlafix.dims = ["n", "V"], mlafix.dtype = "T", mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !xs
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !xs -> !row
    %max = mlafix.reduce max %v : !row
    %maxs = mlafix.splat %max : f32 -> !row
    %below = arith.subf %v, %maxs : !row
    %e = math.exp %below : !row
    %sum = mlafix.reduce add %e : !row
    %all = mlafix.splat %sum : f32 -> !row
    %p = arith.divf %e, %all : !row
    mlafix.store %p, %y[%t] : !row, !fs
    %running = mlafix.scan add %p : !row
    mlafix.store %running, %sums[%t] : !row, !fs
    %log = math.log %sum : f32
    %l = arith.addf %max, %log : f32
    mlafix.store %l, %lse[%t] : f32, !lses
    %i = mlafix.arg_reduce max %v : !row
    mlafix.store %i, %best[%t] : i32, !ints
  }
}
