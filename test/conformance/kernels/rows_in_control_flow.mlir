// Rows through every kind of control flow: two that a loop carries and swaps, one that a branch yields, one that a nested loop uses,
// with reductions in between. On a CPU a long row becomes buffers and loops (SpillRows.cpp), a short one registers.
// The build compiles it for the conformance program, which calls it (ControlFlowTest.cpp).
//
//   x, y [n, D] f32  read and written
//   p           i1
//   k           index

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>
mlafix.kernel @rows_in_control_flow(
    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"},
    %y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %p: i1, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %half = arith.constant 0.5 : f32
    %halves = mlafix.splat %half : f32 -> !tile
    %a = mlafix.load %x[%t] : !rows -> !tile
    %b = mlafix.load %y[%t] : !rows -> !tile
    %c, %d = scf.for %j = %c0 to %k step %c1 iter_args(%u = %a, %v = %b) -> (!tile, !tile) {
      %m = mlafix.reduce max %u : !tile
      %mm = mlafix.splat %m : f32 -> !tile
      %w = arith.mulf %v, %halves : !tile
      %z = arith.addf %u, %mm : !tile
      scf.yield %w, %z : !tile, !tile
    }
    %e = scf.if %p -> (!tile) {
      %s = mlafix.reduce add %c : !tile
      %ss = mlafix.splat %s : f32 -> !tile
      %r = arith.mulf %a, %ss : !tile
      %q = scf.for %j = %c0 to %k step %c1 iter_args(%u = %r) -> (!tile) {
        %g = arith.addf %u, %b : !tile
        scf.yield %g : !tile
      }
      scf.yield %q : !tile
    } else {
      %f = arith.subf %d, %c : !tile
      scf.yield %f : !tile
    }
    mlafix.store %e, %x[%t] : !tile, !rows
    %h = mlafix.reduce min %e : !tile
    %hh = mlafix.splat %h : f32 -> !tile
    %l = arith.addf %d, %hh : !tile
    mlafix.store %l, %y[%t] : !tile, !rows
  }
}
