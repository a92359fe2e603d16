// If a row has many warps, each thread reads the partial results of one warp, and lanes exchange them in the order of
// the tree. All partial results of 16 warps with eight packs would need 128 registers. With few warps, a thread reads
// all of them.
// RUN: %mlafix-opt %s --kernel=many --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=MANY
// RUN: %mlafix-opt %s --kernel=few --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=FEW

!many = memref<?x32000xbf16, strided<[?, 1], offset: ?>>
!few = memref<?x4096xbf16, strided<[?, 1], offset: ?>>
!sums = memref<?xf32, strided<[?], offset: ?>>

// MANY: .entry many_dense
// MANY: bar.sync
// MANY-COUNT-2: ld.shared
// MANY-NOT: ld.shared
// After seven exchanges, a lane has one of eight packs. One more exchange combines all warps, and three combine the
// packs.
// MANY-COUNT-11: shfl.sync.bfly
// MANY-NOT: shfl.sync
// MANY: bar.sync
// MANY-NOT: ld.shared
mlafix.kernel @many(%y: !sums {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !many {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !sums
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !many -> tensor<32000xf32, #mlafix.dim<32000>>
    %s = mlafix.reduce add %v : tensor<32000xf32, #mlafix.dim<32000>>
    mlafix.store %s, %y[%t] : f32, !sums
  }
}

// FEW: .entry few_dense
// FEW: bar.sync
// FEW-COUNT-2: ld.shared
// FEW-NOT: shfl.sync
// FEW: bar.sync
mlafix.kernel @few(%y: !sums {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !few {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !sums
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !few -> tensor<4096xf32, #mlafix.dim<4096>>
    %s = mlafix.reduce add %v : tensor<4096xf32, #mlafix.dim<4096>>
    mlafix.store %s, %y[%t] : f32, !sums
  }
}
