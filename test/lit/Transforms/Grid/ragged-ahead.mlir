// In a ragged grid, before the scan of the predicates, a thread evaluates the predicates of 8 segments at once. If a
// predicate has many operations, it evaluates those of fewer segments.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid))" | FileCheck %s
// RUN: sed 's/attributes {.*} {/{/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_80 variant=any})" | FileCheck %s --check-prefix=PLAN

// PLAN-LABEL: @short_any
// PLAN-SAME: segments_ahead = 8
// PLAN-LABEL: @long_any
// PLAN-SAME: segments_ahead = 2

!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>
!ints = memref<?xi32, strided<[1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: mlafix.kernel @short
  // CHECK: %[[STEP:.*]] = arith.constant 2048 : index
  // CHECK: scf.for {{.*}} step %[[STEP]]
  // CHECK-COUNT-8: mlafix.load %lens
  // CHECK: nvvm.barrier #nvvm.reduction<or>
  // CHECK-COUNT-2: mlafix.load %lens
  // CHECK-NOT: mlafix.load %lens
  mlafix.kernel @short(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"},
                       %lens: !ints {mlafix.dims = ["b"], mlafix.access = "read"},
                       %starts: !ints {mlafix.dims = ["b1"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 4, rows = 16>, segments_ahead = 8>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %out, %c0 : !rows
    mlafix.ragged_forall (%b, %t) in (%starts, %n) : !ints where {
      %len = mlafix.load %lens[%b] : !ints -> i32
      %zero = arith.constant 0 : i32
      %dead = arith.cmpi sle, %len, %zero : i32
      mlafix.yield %dead : i1
    } do {
      %zeros = arith.constant dense<0.0> : !tile
      mlafix.store %zeros, %out[%t] : !tile, !rows
    }
  }

  // CHECK-LABEL: mlafix.kernel @long
  // CHECK: %[[STEP:.*]] = arith.constant 512 : index
  // CHECK: scf.for {{.*}} step %[[STEP]]
  // CHECK-COUNT-2: mlafix.load %lens
  // CHECK-NOT: mlafix.load %lens
  // CHECK: nvvm.barrier #nvvm.reduction<or>
  // CHECK-COUNT-2: mlafix.load %lens
  mlafix.kernel @long(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"},
                      %lens: !ints {mlafix.dims = ["b"], mlafix.access = "read"},
                      %starts: !ints {mlafix.dims = ["b1"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 4, rows = 16>, segments_ahead = 2>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %out, %c0 : !rows
    mlafix.ragged_forall (%b, %t) in (%starts, %n) : !ints where {
      %len = mlafix.load %lens[%b] : !ints -> i32
      %a0 = arith.constant 0 : i32
      %a1 = arith.addi %a0, %len : i32 %a2 = arith.xori %a1, %len : i32
      %a3 = arith.addi %a2, %len : i32 %a4 = arith.xori %a3, %len : i32
      %a5 = arith.addi %a4, %len : i32 %a6 = arith.xori %a5, %len : i32
      %a7 = arith.addi %a6, %len : i32 %a8 = arith.xori %a7, %len : i32
      %a9 = arith.addi %a8, %len : i32 %a10 = arith.xori %a9, %len : i32
      %a11 = arith.addi %a10, %len : i32 %a12 = arith.xori %a11, %len : i32
      %a13 = arith.addi %a12, %len : i32 %a14 = arith.xori %a13, %len : i32
      %a15 = arith.addi %a14, %len : i32 %a16 = arith.xori %a15, %len : i32
      %a17 = arith.addi %a16, %len : i32 %a18 = arith.xori %a17, %len : i32
      %a19 = arith.addi %a18, %len : i32 %a20 = arith.xori %a19, %len : i32
      %a21 = arith.addi %a20, %len : i32 %a22 = arith.xori %a21, %len : i32
      %dead = arith.cmpi sle, %a22, %len : i32
      mlafix.yield %dead : i1
    } do {
      %zeros = arith.constant dense<0.0> : !tile
      mlafix.store %zeros, %out[%t] : !tile, !rows
    }
  }
}
