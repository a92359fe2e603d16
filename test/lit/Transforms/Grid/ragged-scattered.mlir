// If the rows of a ragged grid only store, and the grid has at least 8192 rows, neighbouring blocks process
// neighbouring heads of a token. If rows are loaded, one block processes all heads of a token, so that the block's
// loads overlap.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,canonicalize))" | FileCheck %s
// RUN: sed 's/attributes {.*} {/{/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 variant=any})" | FileCheck %s --check-prefix=PLAN

// PLAN-LABEL: @stored_any
// PLAN-SAME: scattered_rows = 16
// PLAN-NOT: ragged_blocks
// PLAN-LABEL: @copied_any
// PLAN-NOT: scattered_rows
// PLAN: ragged_blocks = 4, ragged_blocks_fit = yes

!rows = memref<?x128x64xf32, strided<[?, 64, 1], offset: ?>>
!ints = memref<?xi32, strided<[1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>
module attributes {mlafix.target = "sm_90"} {
  // A block has 16 rows of 16 lanes, so the 128 heads of a token are 8 parts, and at least 2^3 blocks share a token.
  // CHECK-LABEL: mlafix.kernel @stored
  // CHECK:         %[[LONG:.*]] = arith.cmpi uge, %{{.*}}, %c8192_i32 : i32
  // CHECK:         %[[MOST:.*]] = arith.select %[[LONG]], %c3_i32, %c0_i32 : i32
  // CHECK:         %[[SHARED:.*]] = arith.maxsi %{{.*}}, %[[MOST]] : i32
  // CHECK:         %[[PARTS:.*]] = arith.shli %c1_i32, %[[SHARED]] : i32
  // CHECK:         scf.for %[[AT:.*]] = %{{.*}} to %{{.*}} step
  // CHECK:           %[[MASK:.*]] = arith.subi %[[PARTS]], %c1_i32
  // CHECK:           %[[NUMBER:.*]] = arith.index_castui %[[AT]] : index to i32
  // CHECK:           arith.andi %[[NUMBER]], %[[MASK]] : i32
  mlafix.kernel @stored(%out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "update"},
                        %starts: !ints {mlafix.dims = ["b1"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 4, rows = 16>, scattered_rows = 16>} {
    %c0 = arith.constant 0 : index
    %H = arith.constant 128 : index
    %n = memref.dim %out, %c0 : !rows
    mlafix.ragged_forall (%b, %t, %h) in (%starts, %n, %H) : !ints where {
      %all = arith.constant true
      mlafix.yield %all : i1
    } do {
      %zeros = arith.constant dense<0.0> : !tile
      mlafix.store %zeros, %out[%t, %h] : !tile, !rows
    }
  }
  // CHECK-LABEL: mlafix.kernel @copied
  // CHECK:         arith.maxsi %{{.*}}, %c0_i32 : i32
  mlafix.kernel @copied(%in: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
                        %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "update"},
                        %starts: !ints {mlafix.dims = ["b1"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 4, rows = 16>>} {
    %c0 = arith.constant 0 : index
    %H = arith.constant 128 : index
    %n = memref.dim %out, %c0 : !rows
    mlafix.ragged_forall (%b, %t, %h) in (%starts, %n, %H) : !ints where {
      %all = arith.constant true
      mlafix.yield %all : i1
    } do {
      %row = mlafix.load %in[%t, %h] : !rows -> !tile
      mlafix.store %row, %out[%t, %h] : !tile, !rows
    }
  }
}
