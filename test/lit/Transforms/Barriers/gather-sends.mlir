// The first lane of each row leaves the row's scalars for peers in shared memory. Then neighbouring threads of the
// block store the scalars of its rows to the peers.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 variant=any},mlafix.kernel(mlafix-lower-grid,mlafix-place-collectives),canonicalize)" | FileCheck %s

!vector = memref<?x64xf32, strided<[?, 1], offset: ?>>
!scalars = memref<?xf32, strided<[?], offset: ?>>
!places = memref<?xi32, strided<[?], offset: ?>>
!staged = memref<?x2x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
!lses = memref<?x2x?xf32, strided<[?, ?, ?], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>

// CHECK-LABEL: mlafix.kernel @send_any
// CHECK: %[[THREAD:.*]] = nvvm.read.ptx.sreg.tid.x : i32
// CHECK: %[[TURN:.*]], %[[SENDS:.*]] = mlafix_thread.begin_exchange : index, i1
// CHECK-DAG: %[[LSES:.*]] = memref.alloca() : memref<[[ROWS:[0-9]+]]xf32, #gpu.address_space<workgroup>>
// CHECK-DAG: %[[LARGEST:.*]] = memref.alloca() : memref<[[ROWS]]xf32, #gpu.address_space<workgroup>>
// The row's program leaves the row's lse and its largest element, which the lanes compute, in shared memory. A store
// whose index is loaded from memory stays in the row's program, and so do other stores to the same tensor.
// CHECK: mlafix_thread.row lane %[[LANE:.*]] mask
// CHECK: mlafix.store %{{.*}}, %staged[
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[LANE]], %c0
// CHECK: scf.if %[[FIRST]]
// CHECK: memref.store %[[X:.*]], %[[LSES]][%[[ROW:.*]]] : memref<[[ROWS]]xf32, #gpu
// CHECK: memref.store %[[Y:.*]], %[[LARGEST]][%[[ROW]]] : memref<[[ROWS]]xf32, #gpu
// CHECK: mlafix.store %{{.*}}, %staged_others[%rank, %[[TURN]], %{{.*}}] if %[[SENDS]]
// CHECK: mlafix.store %{{.*}}, %staged_others[%rank, %[[TURN]], %c0] if %[[SENDS]]
// CHECK: nvvm.barrier
// One thread stores the scalars of each row of the block, if the grid has that row.
// CHECK: %[[LANES:.*]] = arith.muli %{{.*}}, %c{{[0-9]+}}_i32
// CHECK: %[[ISOFBLOCK:.*]] = arith.cmpi ult, %[[LANES]], %{{.*}} : i32
// CHECK: %[[ISROW:.*]] = arith.andi %[[ISOFBLOCK]], %{{.*}} : i1
// CHECK: scf.if %[[ISROW]] {
// CHECK: %[[LSE:.*]] = memref.load %[[LSES]][%{{.*}}]
// CHECK: scf.if %[[SENDS]] {
// CHECK-NEXT: memref.store %[[LSE]], %staged_lses[%{{.*}}, %[[TURN]], %[[PLACE:.*]]]
// CHECK: %[[OTHER:.*]] = memref.load %[[LARGEST]][%{{.*}}]
// CHECK: memref.store %[[OTHER]], %staged_largest[%{{.*}}, %[[TURN]], %{{.*}}]
// CHECK: mlafix_thread.end_exchange %[[SENDS]] : i1
// CHECK-NOT: mlafix.store {{.*}} %staged
mlafix.kernel @send(
    %out: !vector {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: !vector {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %lse: !scalars {mlafix.dims = ["n"], mlafix.access = "read"},
    %places: !places {mlafix.dims = ["n"], mlafix.access = "read"},
    %staged: !staged {mlafix.dims = ["ranks", "turns", "n", "D"], mlafix.access = "update", mlafix.peers},
    %staged_lses: !lses {mlafix.dims = ["ranks", "turns", "n"], mlafix.access = "update", mlafix.peers},
    %staged_largest: !lses {mlafix.dims = ["ranks", "turns", "n"], mlafix.access = "update", mlafix.peers},
    %staged_others: !lses {mlafix.dims = ["ranks", "turns", "n"], mlafix.access = "update", mlafix.peers},
    %rank: index, %other: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vector
  mlafix.forall (%t) in (%n) {
    %turn = mlafix.turn : index
    %row = mlafix.load %x[%t] : !vector -> !tile
    %its = mlafix.load %lse[%t] : !scalars -> f32
    %largest = mlafix.reduce max %row : !tile -> f32
    mlafix.store %row, %staged[%other, %turn, %t] : !tile, !staged
    mlafix.store %its, %staged_lses[%other, %turn, %t] : f32, !lses
    mlafix.store %largest, %staged_largest[%other, %turn, %t] : f32, !lses
    %place = mlafix.load %places[%t] : !places -> i32
    %at = arith.index_cast %place : i32 to index
    mlafix.store %its, %staged_others[%rank, %turn, %at] : f32, !lses
    mlafix.store %its, %staged_others[%rank, %turn, %c0] : f32, !lses
    mlafix.exchange
    %received = mlafix.load %staged[%rank, %turn, %t] : !staged -> !tile
    mlafix.store %received, %out[%t] : !tile, !vector
  }
}
