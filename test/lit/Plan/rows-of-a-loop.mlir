// A loop of unknown length that reduces rows hides latency by loading the rows of eight iterations at once, or of four
// if it keeps many rows. The plan of such a kernel does not say how many blocks a multiprocessor must hold
// (`resident`), since that would limit the registers of a thread. The plan of a loop that reduces nothing does.
// RUN: %mlafix-opt %s --target=sm_90 --emit=layout | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_90}),canonicalize)" | FileCheck %s --check-prefix=EIGHT
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_90 machine=crowdedRows=2}),canonicalize)" | FileCheck %s --check-prefix=FOUR
// RUN: sed '/weight/d; s/same : !tile/product : !tile/' %s | %mlafix-opt --target=sm_90 --emit=layout | FileCheck %s --check-prefix=FIT

// CHECK-LABEL: @decode_dense
// CHECK-NOT: resident
// FIT-LABEL: @decode_dense
// FIT-SAME: resident = fit
// EIGHT: scf.for %{{.*}} step %c8
// FOUR: scf.for %{{.*}} step %c4
!rows = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!keys = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>
mlafix.kernel @decode(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %q: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %keys: !keys {mlafix.dims = ["n", "m", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %q, %c0 : !rows
  %m = memref.dim %keys, %c1 : !keys
  mlafix.forall (%t) in (%n) {
    %query = mlafix.load %q[%t] : !rows -> !tile
    %sum = scf.for %i = %c0 to %m step %c1 iter_args(%sum = %query) -> !tile {
      %key = mlafix.load %keys[%t, %i] : !keys -> !tile
      %product = arith.mulf %key, %query : !tile
      %weight = mlafix.reduce add %product : !tile
      %same = mlafix.splat %weight : f32 -> !tile
      %next = arith.addf %sum, %same : !tile
      scf.yield %next : !tile
    }
    mlafix.store %sum, %out[%t] : !tile, !rows
  }
}
