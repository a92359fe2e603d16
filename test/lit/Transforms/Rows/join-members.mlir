// Stores of all members of a row become one store if nothing accesses the tensor between them.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-join-members))" | FileCheck %s

!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
!part = tensor<64xf32, #mlafix.dim<64>>

// CHECK-LABEL: mlafix.kernel @joined(
mlafix.kernel @joined(%x: !rows {mlafix.dims = ["n", "(64 2)"], mlafix.access = "update"}, %k: index {mlafix.at_most = "n"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %p = arith.cmpi ult, %t, %k : index
    // CHECK: %[[A:.*]] = mlafix.load
    %a = mlafix.load %x[%t] member %c0 : !rows -> !part
    // The odd members are stored first.
    // CHECK-NOT: mlafix.store %
    mlafix.store %a, %x[%t] member %c1 if %p : !part, !rows
    %b = arith.negf %a : !part
    // CHECK: %[[B:.*]] = arith.negf
    // CHECK-NEXT: mlafix.store_members(%[[B]], %[[A]]), %x[%{{.*}}] if %{{.*}} : tensor<64xf32
    mlafix.store %b, %x[%t] member %c0 if %p : !part, !rows
  }
}

// CHECK-LABEL: mlafix.kernel @apart(
// CHECK-NOT: mlafix.store_members
mlafix.kernel @apart(%x: !rows {mlafix.dims = ["n", "(64 2)"], mlafix.access = "update"}, %k: index {mlafix.at_most = "n"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %p = arith.cmpi ult, %t, %k : index
    %a = mlafix.load %x[%t] member %c0 : !rows -> !part
    // The next two stores are to the same member, so they stay separate.
    mlafix.store %a, %x[%t] member %c1 : !part, !rows
    mlafix.store %a, %x[%t] member %c1 : !part, !rows
    // The next store has a predicate and the preceding one has none, so they stay separate.
    mlafix.store %a, %x[%t] member %c0 if %p : !part, !rows
    // The next store follows a load of the row, so it stays separate from the store before the load.
    %b = mlafix.load %x[%t] member %c0 : !rows -> !part
    mlafix.store %b, %x[%t] member %c1 if %p : !part, !rows
    %branch = scf.if %p -> !part {
      scf.yield %a : !part
    } else {
      mlafix.store %zero, %x[%t] group %c0 member %c0 : f32, !rows
      scf.yield %b : !part
    }
    mlafix.store %branch, %x[%t] member %c0 if %p : !part, !rows
  }
}

!eight = memref<?x256xi8, strided<[?, 1], offset: ?>>
!quarter = tensor<64xi8, #mlafix.dim<64>>
// CHECK-LABEL: mlafix.kernel @four(
// CHECK: mlafix.store_members(%[[A:.*]], %[[B:.*]], %[[A]], %[[B]]), %x
// CHECK-NOT: mlafix.store
mlafix.kernel @four(%x: !eight {mlafix.dims = ["n", "(64 4)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %x, %c0 : !eight
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %x[%t] member %c0 : !eight -> !quarter
    %b = mlafix.load %x[%t] member %c1 : !eight -> !quarter
    mlafix.store %a, %x[%t] member %c2 : !quarter, !eight
    mlafix.store %b, %x[%t] member %c1 : !quarter, !eight
    mlafix.store %b, %x[%t] member %c3 : !quarter, !eight
    mlafix.store %a, %x[%t] member %c0 : !quarter, !eight
  }
}
