// On a GPU, a ragged grid becomes a scan of the predicate, a loop over the selected rows, and a loop that stores the
// scalars that only depend on indices.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid))" | FileCheck %s

!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>
!col = memref<?xf32, strided<[1], offset: ?>>
!ints = memref<?xi32, strided<[1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: mlafix.kernel @blank
  // CHECK-SAME: rows_per_block = 128, threads = 256, blocks_per_sm = 2
  mlafix.kernel @blank(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"},
                       %lse: !col {mlafix.dims = ["n"], mlafix.access = "update"},
                       %lens: !ints {mlafix.dims = ["b"], mlafix.access = "read"},
                       %starts: !ints {mlafix.dims = ["b1"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 4, rows = 16>, pairs_per_block = 128, ragged_blocks = 2>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %out, %c0 : !rows
    // CHECK: scf.for %{{.*}} = %c0
    // CHECK: mlafix.load %lens
    // CHECK: nvvm.barrier #nvvm.reduction<or>
    // CHECK: nvvm.shfl.sync up
    // CHECK: memref.store %{{.*}}, %lse
    // CHECK: mlafix_thread.row lane %{{.*}} mask %{{.*}} {
    // CHECK-NOT: %lse
    // CHECK: mlafix.store %{{.*}}, %out
    // CHECK-NOT: mlafix.ragged_forall
    mlafix.ragged_forall (%b, %t) in (%starts, %n) : !ints where {
      %len = mlafix.load %lens[%b] : !ints -> i32
      %zero = arith.constant 0 : i32
      %dead = arith.cmpi sle, %len, %zero : i32
      mlafix.yield %dead : i1
    } do {
      %none = arith.constant 0xFF800000 : f32
      %zeros = arith.constant dense<0.0> : !tile
      mlafix.store %zeros, %out[%t] : !tile, !rows
      mlafix.store %none, %lse[%t] : f32, !col
    }
  }
}
