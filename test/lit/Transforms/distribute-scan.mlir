// Tests a scan of a row with several warps. The warps store their totals, one per pack, to shared memory. Each lane
// loads the totals of one warp, and the lanes of every warp add them.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_80 machine=sharedPacks=1},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s

!rows = memref<?x2048xi32, strided<[?, 1], offset: ?>>
!tile = tensor<2048xi32, #mlafix.dim<2048>>

// CHECK-LABEL: @scan_fast
// CHECK-SAME: lanes = 256, packs = 2, pack = 4, rows = 1
// CHECK: %[[ALL:.*]] = arith.constant -1 : i32
// CHECK-COUNT-10: nvvm.shfl.sync bfly
// CHECK-DAG: memref.alloca() : memref<16xi32, #mlafix_thread.scratch>
// CHECK: nvvm.barrier
// CHECK-COUNT-2: memref.load
// CHECK-NOT: memref.load
// Three rounds combine pairs of blocks: of 1, of 2 and of 4 of the eight warps. For each of the two packs, a round
// shuffles once for the total that a warp adds to its elements. The first two rounds also shuffle once to add the
// totals of a pair.
// CHECK-COUNT-4: nvvm.shfl.sync {{idx|bfly}} %[[ALL]]
// CHECK-COUNT-4: nvvm.shfl.sync {{idx|bfly}} %[[ALL]]
// CHECK-COUNT-2: nvvm.shfl.sync idx %[[ALL]]
// CHECK-NOT: nvvm.shfl.sync
// CHECK: nvvm.barrier
// CHECK-LABEL: @scan_any
mlafix.kernel @scan(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %s = mlafix.scan add %v : !tile
    mlafix.store %s, %y[%t] : !tile, !rows
  }
}
