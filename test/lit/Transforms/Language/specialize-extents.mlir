// An extent that is computed from upper-case dims becomes a constant when names are bound. An extent that the launch
// decides stays dynamic.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=G=4,K=128})" | FileCheck %s

!heads = memref<?x?x64xf32, strided<[?, ?, 1], offset: ?>>
!groups = memref<?x?xf32, strided<[?, 1], offset: ?>>
!table = memref<?xi32, strided<[1], offset: ?>>

// CHECK-LABEL: mlafix.kernel @both
// CHECK: %[[N:.*]] = memref.dim %q, %c0
// CHECK: %[[SUM:.*]] = arith.constant 132 : index
// CHECK: mlafix.forall (%{{.*}}, %{{.*}}) in (%[[N]], %[[SUM]])
mlafix.kernel @both(
    %q: !heads {mlafix.dims = ["n", "G", "d"], mlafix.access = "update"},
    %k: !heads {mlafix.dims = ["n", "K", "d"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %q, %c0 : !heads
  %G = memref.dim %q, %c1 : !heads
  %K = memref.dim %k, %c1 : !heads
  %heads = arith.addi %G, %K : index
  mlafix.forall (%t, %h) in (%n, %heads) {}
}

// CHECK-LABEL: mlafix.kernel @factor
// CHECK: %[[G:.*]] = arith.constant 4 : index
// CHECK: mlafix.ragged_forall (%{{.*}}, %{{.*}}, %{{.*}}) in (%cu, %{{.*}}, %[[G]])
mlafix.kernel @factor(
    %x: !groups {mlafix.dims = ["n", "(G K)"], mlafix.access = "update"},
    %w: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["K"], mlafix.access = "read"},
    %cu: !table {mlafix.dims = ["b1"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !groups
  %GK = memref.dim %x, %c1 : !groups
  %K = memref.dim %w, %c0 : memref<?xf32, strided<[1], offset: ?>>
  %G = arith.floordivsi %GK, %K : index
  mlafix.ragged_forall (%b, %t, %g) in (%cu, %n, %G) : !table where {
    %true = arith.constant true
    mlafix.yield %true : i1
  } do {}
}
