// Unrolling nested loops multiplies their code. The inner loops are unrolled first, and a loop stays if unrolling it
// would exceed a budget. Here only the outermost loop stays.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_90}))" | FileCheck %s --implicit-check-not=scf.for
// RUN: %python %S/../../Performance/code_size.py --tool %mlafix-opt --max-ptx=16000 --max-object=60000 %s

!rows = memref<?x?x?x?x64xbf16, strided<[?, ?, ?, ?, 1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>

// CHECK-LABEL: mlafix.kernel @nested(
// CHECK: scf.for
// CHECK-COUNT-73: mlafix.load %
// CHECK-NOT: mlafix.load
mlafix.kernel @nested(
    %y: memref<?x64xbf16, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "a", "b", "c", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %none = arith.constant dense<0.0> : !tile
    %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%p = %none) -> (!tile) {
      %u = mlafix.load %x[%t, %i, %c0, %c0] : !rows -> !tile
      %p0 = arith.addf %p, %u : !tile
      %q = scf.for %j = %c0 to %c8 step %c1 iter_args(%r = %p0) -> (!tile) {
        %v = mlafix.load %x[%t, %i, %j, %c0] : !rows -> !tile
        %r0 = arith.mulf %r, %v : !tile
        %s = scf.for %k = %c0 to %c8 step %c1 iter_args(%a = %r0) -> (!tile) {
          %w = mlafix.load %x[%t, %i, %j, %k] : !rows -> !tile
          %m = arith.mulf %w, %v : !tile
          %b = arith.addf %a, %m : !tile
          scf.yield %b : !tile
        }
        scf.yield %s : !tile
      }
      scf.yield %q : !tile
    }
    mlafix.store %sum, %y[%t] : !tile, memref<?x64xbf16, strided<[?, 1], offset: ?>>
  }
}
