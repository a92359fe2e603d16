// In a kernel with one tensor per rank, blocks wait for the ranks before the row's program. After the row's program,
// the last block releases the ranks' memory. If a rank did not arrive in time, loads from peers give NaN and read
// nothing.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 variant=any},mlafix.kernel(mlafix-lower-grid,mlafix-place-collectives))" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3 variant=any},mlafix.kernel(mlafix-lower-grid,mlafix-place-collectives))" | FileCheck %s --check-prefix=CPU
// CPU-NOT: wait_peers

!parts = memref<?x?x64xf32, strided<[?, ?, 1], offset: ?>>
!counts = memref<?x?xi32, strided<[?, ?], offset: ?>>
!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>

// CHECK-LABEL: mlafix.kernel @total_any
// CHECK: nvvm.griddepcontrol wait
// CHECK: %[[ARRIVED:.*]] = mlafix_thread.wait_peers : i1
// CHECK-NEXT: scf.if %[[ARRIVED]] {
// CHECK-NEXT: scf.if
// CHECK-NEXT: mlafix_thread.row
// CHECK: mlafix.load %parts
// CHECK: mlafix.load %counts
// CHECK: mlafix.load %bias
// CHECK: %[[VALID:.*]] = mlafix_thread.release_peers %[[ARRIVED]] : i1
// CHECK: %[[MARKS:.*]] = arith.xori %[[VALID]], %true
// CHECK: scf.if %[[MARKS]] {
// CHECK-NEXT: scf.if
// CHECK-NEXT: mlafix_thread.row
// CHECK-NOT: mlafix.load %parts
// CHECK-NOT: mlafix.load %counts
// CHECK: %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK: mlafix.splat %[[NAN]]
// CHECK: arith.constant -1 : i32
// CHECK: mlafix.load %bias
// CHECK: mlafix.store
// CHECK: }
// CHECK-NOT: {{wait_peers|release_peers}}
mlafix.kernel @total(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %parts: !parts {mlafix.dims = ["ranks", "n", "D"], mlafix.access = "read", mlafix.peers},
    %counts: !counts {mlafix.dims = ["ranks", "n"], mlafix.access = "read", mlafix.peers},
    %bias: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %part = mlafix.load %parts[%c0, %t] : !parts -> !tile
    %count = mlafix.load %counts[%c0, %t] : !counts -> i32
    %factor = arith.sitofp %count : i32 to f32
    %factors = mlafix.splat %factor : f32 -> !tile
    %bias_row = mlafix.load %bias[%t] : !rows -> !tile
    %scaled = arith.mulf %part, %factors : !tile
    %sum = arith.addf %scaled, %bias_row : !tile
    mlafix.store %sum, %out[%t] : !tile, !rows
  }
}
