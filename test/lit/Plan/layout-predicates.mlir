// A lane has a predicate for each pack of a row along a bound, and so holds fewer elements of it.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90})" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 machine=predicatedPacks=32})" | FileCheck %s --check-prefix=MORE

!long = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!sums = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<131072xf32, #mlafix.dim<"v" most 131072>>
!short = tensor<32768xf32, #mlafix.dim<"w" most 32768>>

// Two reductions leave a lane registers for 64 elements of 16 bits, two in each, but not in a block of 1024 threads.
// CHECK-LABEL: mlafix.kernel @twice_most32768_whole_dense(
// CHECK-SAME: layout = <lanes = 1024, packs = 4, pack = 8, rows = 1>
// CHECK-LABEL: mlafix.kernel @twice_whole_dense(
// CHECK-SAME: layout = <lanes = 2048, packs = 8, pack = 8, rows = 1, blocks = 8>
mlafix.kernel @twice(%y: !sums {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !long {mlafix.dims = ["n", "v"], mlafix.access = "read"})
    attributes {most = {v = 131072}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !sums
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !long -> !tile
    %most = mlafix.reduce max %v : !tile
    %least = mlafix.reduce min %v : !tile
    %z = arith.subf %most, %least : f32
    mlafix.store %z, %y[%t] : f32, !sums
  }
}

// Three reductions leave them for 40.
// CHECK-LABEL: mlafix.kernel @thrice_whole_dense(
// CHECK-SAME: layout = <lanes = 4096, packs = 4, pack = 8, rows = 1, blocks = 8>
mlafix.kernel @thrice(%y: !sums {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !long {mlafix.dims = ["n", "v"], mlafix.access = "read"})
    attributes {most = {v = 131072}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !sums
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !long -> !tile
    %most = mlafix.reduce max %v : !tile
    %least = mlafix.reduce min %v : !tile
    %sum = mlafix.reduce add %v : !tile
    %a = arith.subf %most, %least : f32
    %z = arith.addf %a, %sum : f32
    mlafix.store %z, %y[%t] : f32, !sums
  }
}

// 32 single elements of a lane, of rows that are stored, are processed in a loop.
// CHECK-LABEL: mlafix.kernel @stored_whole_dense(
// CHECK-NOT: row_loops
// CHECK-LABEL: mlafix.kernel @stored_fast(
// CHECK-SAME: layout = <lanes = 1024, packs = 32, pack = 1, rows = 1>
// CHECK-SAME: row_loops = yes, loop_elements = 8
// MORE-LABEL: mlafix.kernel @stored_fast(
// MORE-NOT: row_loops
mlafix.kernel @stored(%y: !long {mlafix.dims = ["n", "w"], mlafix.access = "write"}, %x: !long {mlafix.dims = ["n", "w"], mlafix.access = "read"})
    attributes {most = {w = 32768}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !long
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !long -> !short
    %s = mlafix.reduce max %v : !short
    %all = mlafix.splat %s : f32 -> !short
    %rest = arith.subf %v, %all : !short
    mlafix.store %rest, %y[%t] : !short, !long
  }
}
