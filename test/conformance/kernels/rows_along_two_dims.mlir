// Rows along two dims, each with packs of its own, that know each other by their sums alone; both carried by a loop.
// The build compiles it for the conformance program, which calls it (ControlFlowTest.cpp).
//
//   x [n, D], y [n, E] f32  read and written
//   k                       index

!xs = memref<?x?xf32, strided<[?, 1], offset: ?>>
!d = tensor<?xf32, #mlafix.dim<"D">>
!e = tensor<?xf32, #mlafix.dim<"E">>
mlafix.kernel @rows_along_two_dims(
    %x: !xs {mlafix.dims = ["n", "D"], mlafix.access = "update"},
    %y: !xs {mlafix.dims = ["n", "E"], mlafix.access = "update"}, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !xs
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %x[%t] : !xs -> !d
    %b = mlafix.load %y[%t] : !xs -> !e
    %c, %f = scf.for %j = %c0 to %k step %c1 iter_args(%v = %a, %w = %b) -> (!d, !e) {
      %max = mlafix.reduce max %v : !d
      %min = mlafix.reduce min %w : !e
      %tops = mlafix.splat %max : f32 -> !e
      %lows = mlafix.splat %min : f32 -> !d
      %v2 = arith.addf %v, %lows : !d
      %w2 = arith.subf %w, %tops : !e
      scf.yield %v2, %w2 : !d, !e
    }
    %sum = mlafix.reduce add %c : !d
    %sums = mlafix.splat %sum : f32 -> !e
    %g = arith.addf %f, %sums : !e
    mlafix.store %c, %x[%t] : !d, !xs
    mlafix.store %g, %y[%t] : !e, !xs
  }
}
