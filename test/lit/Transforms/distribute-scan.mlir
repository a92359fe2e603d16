// A scan of a row with several warps. Shared memory contains the warps' totals. Each lane loads one total for each pack, and the
// lanes of every warp add them.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_80 machine=sharedPacks=1},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s

!rows = memref<?x2048xi32, strided<[?, 1], offset: ?>>
!tile = tensor<2048xi32, #mlafix.dim<2048>>

// CHECK-LABEL: @scan_fast
// CHECK-SAME: lanes = 256, packs = 2, pack = 4, rows = 1
// CHECK: %[[ALL:.*]] = arith.constant -1 : i32
// CHECK-COUNT-10: nvvm.shfl.sync bfly
// CHECK-DAG: memref.alloca() : memref<16xi32, #mlafix.scratch>
// CHECK: nvvm.barrier
// CHECK-COUNT-2: memref.load
// CHECK-NOT: memref.load
// Blocks of 1, 2 and 4 of the eight warps are combined. The total of the last warp is not added.
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
