// A kernel with an exchange loads from this rank's own tensor after a store to it. The load is not moved before the
// wait for the other ranks.
// RUN: %mlafix-opt %s --target=sm_90 --variant=any --emit=ptx | FileCheck %s

!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>
!scalars = memref<?xf32, strided<[?], offset: ?>>
!staged = memref<?x2x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>

// Only the row that is sent is loaded before the wait.
// CHECK-LABEL: .entry own_any(
// CHECK-COUNT-8: @%p{{[0-9]+}} ld.global.b32
// CHECK-NOT: @%p{{[0-9]+}} ld.global
// CHECK: ld.acquire.sys.global.b64
// CHECK: bar.red.and.pred
// CHECK: st.global
// CHECK-NOT: bar.red
mlafix.kernel @own(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %sums: !scalars {mlafix.dims = ["n"], mlafix.access = "update"},
    %staged: !staged {mlafix.dims = ["ranks", "turns", "n", "D"], mlafix.access = "update", mlafix.peers}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %turn = mlafix.turn : index
    %row = mlafix.load %x[%t] : !rows -> !tile
    mlafix.store %row, %staged[%c0, %turn, %t] : !tile, !staged
    mlafix.exchange
    %received = mlafix.load %staged[%c0, %turn, %t] : !staged -> !tile
    %sum = mlafix.reduce add %received : !tile -> f32
    mlafix.store %sum, %sums[%t] : f32, !scalars
    %again = mlafix.load %sums[%t] : !scalars -> f32
    %sums_again = mlafix.splat %again : f32 -> !tile
    %product = arith.mulf %received, %sums_again : !tile
    mlafix.store %product, %out[%t] : !tile, !rows
  }
}
