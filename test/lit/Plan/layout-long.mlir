// Layouts of long rows that are reduced. Two rows share a multiprocessor if its registers can hold both. If a row of
// 16-bit elements is only reduced, lanes keep the narrow elements and widen them for each reduction, so twice as many
// elements fit.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90})" | FileCheck %s
// RUN: %mlafix-opt %s --kernel=only_reduced --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=PTX

!bf16 = memref<?x32000xbf16, strided<[?, 1], offset: ?>>
!half = memref<?x16384xbf16, strided<[?, 1], offset: ?>>
!sums = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<32000xf32, #mlafix.dim<32000>>
!halves = tensor<16384xf32, #mlafix.dim<16384>>

// CHECK-LABEL: mlafix.kernel @only_reduced_dense(
// CHECK-SAME: layout = <lanes = 512, packs = 8, pack = 8, rows = 1>
// Elements of rows at any address are moved one by one, each to its own register.
// CHECK-LABEL: mlafix.kernel @only_reduced_any(
// CHECK-SAME: layout = <lanes = 1024, packs = 32, pack = 1, rows = 1>
// PTX: .reqntid 512, 1, 1
// PTX-NEXT: .minnctapersm 2
mlafix.kernel @only_reduced(%y: !sums {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !bf16 {mlafix.dims = ["n", "V"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !sums
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf16 -> !tile
    %s = mlafix.reduce add %v : !tile
    mlafix.store %s, %y[%t] : f32, !sums
  }
}

// The squares are kept between the reductions. They are f32 and need twice the registers.
// CHECK-LABEL: mlafix.kernel @kept_dense(
// CHECK-SAME: layout = <lanes = 1024, packs = 4, pack = 8, rows = 1>
mlafix.kernel @kept(%y: !sums {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !bf16 {mlafix.dims = ["n", "V"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !sums
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf16 -> !tile
    %square = arith.mulf %v, %v : !tile
    %most = mlafix.reduce max %square : !tile
    %all = mlafix.splat %most : f32 -> !tile
    %rest = arith.subf %square, %all : !tile
    %s = mlafix.reduce add %rest : !tile
    mlafix.store %s, %y[%t] : f32, !sums
  }
}

// CHECK-LABEL: mlafix.kernel @stored_dense(
// CHECK-SAME: layout = <lanes = 512, packs = 4, pack = 8, rows = 1>
mlafix.kernel @stored(%y: !half {mlafix.dims = ["n", "V"], mlafix.access = "write"}, %x: !half {mlafix.dims = ["n", "V"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !half
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !half -> !halves
    %s = mlafix.reduce max %v : !halves
    %all = mlafix.splat %s : f32 -> !halves
    %rest = arith.subf %v, %all : !halves
    mlafix.store %rest, %y[%t] : !halves, !half
  }
}

// An i64 needs two registers, so a row of 16384 elements has 1024 lanes. A row of as many f32 (@stored) has 512.
!ints = memref<?x16384xi64, strided<[?, 1], offset: ?>>
!longs = tensor<16384xi64, #mlafix.dim<16384>>
// CHECK-LABEL: mlafix.kernel @of_two_registers_dense(
// CHECK-SAME: layout = <lanes = 1024, packs = 8, pack = 2, rows = 1>
mlafix.kernel @of_two_registers(%y: !ints {mlafix.dims = ["n", "V"], mlafix.access = "write"}, %x: !ints {mlafix.dims = ["n", "V"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !ints
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !ints -> !longs
    %s = mlafix.reduce max %v : !longs
    %all = mlafix.splat %s : i64 -> !longs
    %rest = arith.subi %v, %all : !longs
    mlafix.store %rest, %y[%t] : !longs, !ints
  }
}

// In a ragged grid, a block stays on its multiprocessor until the grid ends, so it may have all 1024 threads.
!starts = memref<?xi32, strided<[?], offset: ?>>
// CHECK-LABEL: mlafix.kernel @ragged_dense(
// CHECK-SAME: layout = <lanes = 1024, packs = 2, pack = 8, rows = 1>
mlafix.kernel @ragged(%y: !half {mlafix.dims = ["n", "V"], mlafix.access = "write"}, %x: !half {mlafix.dims = ["n", "V"], mlafix.access = "read"}, %starts: !starts {mlafix.dims = ["b+1"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %n = memref.dim %y, %c0 : !half
  mlafix.ragged_forall (%b, %t) in (%starts, %n) : !starts where {
    mlafix.yield %true : i1
  } do {
    %v = mlafix.load %x[%t] : !half -> !halves
    %s = mlafix.reduce max %v : !halves
    %all = mlafix.splat %s : f32 -> !halves
    %rest = arith.subf %v, %all : !halves
    mlafix.store %rest, %y[%t] : !halves, !half
  }
}
