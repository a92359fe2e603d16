// A row that does not fit into a block's registers is distributed over the blocks of a cluster, with the fewest threads
// that can hold it. The code version for rows at any address processes the row in loops, in one block.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90})" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 machine=clusterBlocks=4})" | FileCheck %s --check-prefix=FOUR
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 machine=clusterBlocks=2})" | FileCheck %s --check-prefix=TWO
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 machine=clusterBlocks=0})" | FileCheck %s --check-prefix=NONE --implicit-check-not=blocks
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_80})" | FileCheck %s --check-prefix=NONE --implicit-check-not=blocks

!rows = memref<?x128256xbf16, strided<[?, 1], offset: ?>>
!sums = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<128256xf32, #mlafix.dim<128256>>

// CHECK-LABEL: mlafix.kernel @stored_dense(
// CHECK-SAME: layout = <lanes = 4096, packs = 4, pack = 8, rows = 1, blocks = 8>
// CHECK-LABEL: mlafix.kernel @stored_any(
// CHECK-SAME: layout = <lanes = 1024, packs = 126, pack = 1, rows = 1>
// FOUR-LABEL: mlafix.kernel @stored_dense(
// FOUR-SAME: layout = <lanes = 4096, packs = 4, pack = 8, rows = 1, blocks = 4>
// NONE-LABEL: mlafix.kernel @stored_dense(
// NONE-SAME: layout = <lanes = 1024, packs = 16, pack = 8, rows = 1>
mlafix.kernel @stored(%y: !rows {mlafix.dims = ["n", "V"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "V"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %s = mlafix.reduce max %v : !tile
    %all = mlafix.splat %s : f32 -> !tile
    %rest = arith.subf %v, %all : !tile
    mlafix.store %rest, %y[%t] : !tile, !rows
  }
}

// A lane holds more packs of a row that is only reduced, so fewer lanes hold the row.
// CHECK-LABEL: mlafix.kernel @only_reduced_dense(
// CHECK-SAME: layout = <lanes = 2048, packs = 8, pack = 8, rows = 1, blocks = 8>
// TWO-LABEL: mlafix.kernel @only_reduced_dense(
// TWO-SAME: layout = <lanes = 2048, packs = 8, pack = 8, rows = 1, blocks = 2>
mlafix.kernel @only_reduced(%y: !sums {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "V"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !sums
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %s = mlafix.reduce add %v : !tile
    mlafix.store %s, %y[%t] : f32, !sums
  }
}

// A row that is scanned stays in one block, since a scan needs the shared memory of one block.
// CHECK-LABEL: mlafix.kernel @scanned_dense(
// CHECK-SAME: layout = <lanes = 1024, packs = 16, pack = 8, rows = 1>
mlafix.kernel @scanned(%y: !rows {mlafix.dims = ["n", "V"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "V"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %s = mlafix.reduce max %v : !tile
    %all = mlafix.splat %s : f32 -> !tile
    %rest = arith.subf %v, %all : !tile
    %sums = mlafix.scan add %rest : !tile
    mlafix.store %sums, %y[%t] : !tile, !rows
  }
}

// The row fits into one block if the block has 1024 threads.
!short = memref<?x32000xbf16, strided<[?, 1], offset: ?>>
// CHECK-LABEL: mlafix.kernel @in_a_block_dense(
// CHECK-SAME: layout = <lanes = 1024, packs = 4, pack = 8, rows = 1>
mlafix.kernel @in_a_block(%y: !short {mlafix.dims = ["n", "V"], mlafix.access = "write"}, %x: !short {mlafix.dims = ["n", "V"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !short
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !short -> tensor<32000xf32, #mlafix.dim<32000>>
    %s = mlafix.reduce max %v : tensor<32000xf32, #mlafix.dim<32000>>
    %all = mlafix.splat %s : f32 -> tensor<32000xf32, #mlafix.dim<32000>>
    %rest = arith.subf %v, %all : tensor<32000xf32, #mlafix.dim<32000>>
    mlafix.store %rest, %y[%t] : tensor<32000xf32, #mlafix.dim<32000>>, !short
  }
}

// A row whose size the launch decides uses a cluster if a row as long as its bound does not fit into a block. Shorter
// rows have their own code versions.
// CHECK-LABEL: mlafix.kernel @ends_most4096_whole_dense(
// CHECK-LABEL: mlafix.kernel @ends_most32768_whole_dense(
// CHECK-SAME: layout = <lanes = 1024, packs = 4, pack = 8, rows = 1>
// CHECK-LABEL: mlafix.kernel @ends_most65536_whole_dense(
// CHECK-SAME: layout = <lanes = 2048, packs = 4, pack = 8, rows = 1, blocks = 8>
// CHECK-LABEL: mlafix.kernel @ends_most131072_whole_dense(
// CHECK-SAME: layout = <lanes = 4096, packs = 4, pack = 8, rows = 1, blocks = 8>
// CHECK-NOT: most131072_fast
// CHECK-LABEL: mlafix.kernel @ends_whole_dense(
// CHECK-SAME: layout = <lanes = 4096, packs = 5, pack = 8, rows = 1, blocks = 8>
// NONE-LABEL: mlafix.kernel @ends_most4096_whole_dense(
// NONE-NOT: most32768
!open = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!ends = tensor<151936xf32, #mlafix.dim<"v" most 151936>>
mlafix.kernel @ends(%y: !open {mlafix.dims = ["n", "v"], mlafix.access = "write"}, %x: !open {mlafix.dims = ["n", "v"], mlafix.access = "read"}) attributes {most = {v = 151936 : i64}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !open
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !open -> !ends
    %s = mlafix.reduce max %v : !ends
    %all = mlafix.splat %s : f32 -> !ends
    %rest = arith.subf %v, %all : !ends
    mlafix.store %rest, %y[%t] : !ends, !open
  }
}
