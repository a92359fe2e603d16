// A byte of f4e2m1 holds two elements, so the lanes load packs of two bf16. The addresses of these packs may not be
// multiples of 4. A load before the ranks' wait would be one access of 4 bytes, so these packs are loaded after the
// wait.
// RUN: %mlafix-opt %s --target=sm_90 --variant=any --emit=ptx | FileCheck %s

!rows = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!packed = memref<?x64xf4E2M1FN, strided<[?, 1], offset: ?>>
!scalars = memref<?xf32, strided<[?], offset: ?>>
!staged = memref<?x2x?xf32, strided<[?, ?, ?], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>

// Only the lse is loaded before the wait.
// CHECK-LABEL: .entry unaligned_any(
// CHECK: @%p{{[0-9]+}} ld.global.b32
// CHECK-NOT: ld.global
// CHECK: ld.acquire.sys.global.b64
// CHECK-NOT: ld.global.b32
// CHECK-COUNT-16: ld.global.b16
mlafix.kernel @unaligned(
    %out: !packed {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %lse: !scalars {mlafix.dims = ["n"], mlafix.access = "read"},
    %staged: !staged {mlafix.dims = ["ranks", "turns", "n"], mlafix.access = "update", mlafix.peers}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !packed
  mlafix.forall (%t) in (%n) {
    %turn = mlafix.turn : index
    %its = mlafix.load %lse[%t] : !scalars -> f32
    mlafix.store %its, %staged[%c0, %turn, %t] : f32, !staged
    mlafix.exchange
    %row = mlafix.load %x[%t] : !rows -> !tile
    mlafix.store %row, %out[%t] : !tile, !packed
  }
}
