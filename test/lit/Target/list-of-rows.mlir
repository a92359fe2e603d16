// The code for dense rows knows the distance between the rows of a tensor, but not the distance between the tensors of
// a list.
// RUN: %mlafix-opt %s --specialize=D=128 --target=sm_90 --variant=dense --emit=distributed | FileCheck %s

// CHECK: mlafix.kernel @sum_dense(
// CHECK-SAME: %rows: memref<?x128xf32, strided<[?, 1], offset: ?>>
// CHECK-SAME: %out: memref<?x128xf32, strided<[128, 1], offset: ?>>

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>

mlafix.kernel @sum(%rows: !rows {mlafix.dims = ["k", "D"], mlafix.access = "read", mlafix.list = 8},
                   %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %out, %c0 : !rows
  %count = memref.dim %rows, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %none = mlafix.splat %zero : f32 -> !tile
    %all = scf.for %i = %c0 to %count step %c1 iter_args(%acc = %none) -> (!tile) {
      %row = mlafix.load %rows[%i] : !rows -> !tile
      %sum = arith.addf %acc, %row : !tile
      scf.yield %sum : !tile
    }
    mlafix.store %all, %out[%t] : !tile, !rows
  }
}
