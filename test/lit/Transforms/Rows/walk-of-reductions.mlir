// If the code for all packs of a row is too long, the row is processed in loops over packs. A reduction ends a loop if
// another reduction depends on it. A row of two packs stays unrolled if the code of the loops would be no shorter.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-loop-over-packs))" | FileCheck %s
// RUN: sed 's/packs = 2, pack = 4/packs = 8, pack = 1/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-loop-over-packs))" | FileCheck %s --check-prefix=EIGHT

!rows = memref<?x256xf32, strided<[?, 1], offset: ?>>
!tile = tensor<256xf32, #mlafix.dim<256>>
module attributes {mlafix.target = "sm_90", mlafix.machine = ["unrolledInstructions=16"]} {
  // CHECK-LABEL: mlafix.kernel @reductions
  // CHECK-NOT: memref.alloca
  // CHECK: mlafix.reduce
  // CHECK: mlafix.reduce
  // EIGHT-LABEL: mlafix.kernel @reductions
  // EIGHT: memref.alloca() : memref<8xf32>
  // EIGHT-NOT: mlafix.reduce
  mlafix.kernel @reductions(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 2, pack = 4, rows = 4>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : !rows -> !tile
      %most = mlafix.reduce max %v : !tile
      %all = mlafix.splat %most : f32 -> !tile
      %w = arith.subf %v, %all : !tile
      %sum = mlafix.reduce add %w : !tile
      %sums = mlafix.splat %sum : f32 -> !tile
      %y = arith.subf %w, %sums : !tile
      mlafix.store %y, %x[%t] : !tile, !rows
    }
  }

  // Reductions that do not depend on each other share a loop.
  // CHECK-LABEL: mlafix.kernel @independent
  // CHECK: scf.for
  // CHECK: vector.load
  mlafix.kernel @independent(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %y: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 2, pack = 4, rows = 4>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : !rows -> !tile
      %w = arith.mulf %v, %v : !tile
      %most = mlafix.reduce max %v : !tile
      %least = mlafix.reduce min %v : !tile
      %sum = mlafix.reduce add %v : !tile
      %squares = mlafix.reduce add %w : !tile
      %a = arith.addf %most, %least : f32
      %b = arith.addf %sum, %squares : f32
      %c = arith.addf %a, %b : f32
      mlafix.store %c, %y[%t] : f32, memref<?xf32, strided<[?], offset: ?>>
    }
  }

  // CHECK-LABEL: mlafix.kernel @rows_alone
  // CHECK: scf.for
  // CHECK: vector.load
  mlafix.kernel @rows_alone(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 2, pack = 4, rows = 4>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : !rows -> !tile
      %w = arith.addf %v, %v : !tile
      %y = arith.mulf %w, %v : !tile
      mlafix.store %y, %x[%t] : !tile, !rows
    }
  }
}
