// A row with an exchange becomes two programs: one that stores to the peers, and one after the exchange. If a rank did
// not arrive, loads of what peers stored give NaN.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 variant=any},mlafix.kernel(mlafix-lower-grid,mlafix-place-collectives))" | FileCheck %s

!vector = memref<?x64xf32, strided<[?, 1], offset: ?>>
!flags = memref<?xi32, strided<[?], offset: ?>>
!staged = memref<?x2x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
!counts = memref<?x2x?xi32, strided<[?, ?, ?], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>

// CHECK-LABEL: mlafix.kernel @swap_any
// CHECK: nvvm.griddepcontrol wait
// CHECK: %[[TURN:.*]], %[[SENDS:.*]] = mlafix_thread.begin_exchange : index, i1
// CHECK-NOT: scf.if %[[SENDS]]
// CHECK: mlafix_thread.row
// CHECK: %[[X:.*]] = mlafix.load %x[
// CHECK: scf.for %[[R:.*]] =
// CHECK: %[[STORED:.*]] = arith.andi %{{.*}}, %[[SENDS]] : i1
// CHECK: mlafix.store %[[X]], %staged[%[[R]], %[[TURN]], %{{.*}}] if %[[STORED]] :
// CHECK: mlafix.store %{{.*}}, %counts[%{{.*}}, %[[TURN]], %{{.*}}] if %[[SENDS]] :
// CHECK-NOT: %out
// CHECK: %[[ARRIVED:.*]] = mlafix_thread.end_exchange %[[SENDS]] : i1
// CHECK-NEXT: scf.if %[[ARRIVED]] {
// CHECK: mlafix_thread.row
// CHECK-NOT: mlafix.load %x[
// CHECK-NOT: mlafix.store {{.*}} %staged
// CHECK: mlafix.load %staged[%rank, %[[TURN]], %{{.*}}]
// CHECK: mlafix.load %counts[%rank, %[[TURN]], %{{.*}}]
// CHECK: mlafix.store %{{.*}}, %out[
// CHECK: } else {
// CHECK: mlafix_thread.row
// CHECK-NOT: mlafix.load
// CHECK: %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK: mlafix.splat %[[NAN]]
// CHECK: arith.constant -1 : i32
// CHECK: mlafix.store %{{.*}}, %out[
// CHECK-NOT: {{mlafix.turn|mlafix.exchange|end_exchange}}
mlafix.kernel @swap(
    %out: !vector {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: !vector {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %live: !flags {mlafix.dims = ["n"], mlafix.access = "read"},
    %staged: !staged {mlafix.dims = ["ranks", "turns", "n", "D"], mlafix.access = "update", mlafix.peers},
    %counts: !counts {mlafix.dims = ["ranks", "turns", "n"], mlafix.access = "update", mlafix.peers},
    %rank: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %n = memref.dim %out, %c0 : !vector
  %ranks = memref.dim %staged, %c0 : !staged
  mlafix.forall (%t) in (%n) {
    %turn = mlafix.turn : index
    %row = mlafix.load %x[%t] : !vector -> !tile
    %length = mlafix.load %live[%t] : !flags -> i32
    %isLive = arith.cmpi sgt, %length, %zero : i32
    scf.for %r = %c0 to %ranks step %c1 {
      mlafix.store %row, %staged[%r, %turn, %t] if %isLive : !tile, !staged
      mlafix.store %length, %counts[%r, %turn, %t] : i32, !counts
    }
    mlafix.exchange
    %other = mlafix.load %staged[%rank, %turn, %t] : !staged -> !tile
    %count = mlafix.load %counts[%rank, %turn, %t] : !counts -> i32
    %factor = arith.sitofp %count : i32 to f32
    %factors = mlafix.splat %factor : f32 -> !tile
    %scaled = arith.mulf %other, %factors : !tile
    mlafix.store %scaled, %out[%t] : !tile, !vector
  }
}
