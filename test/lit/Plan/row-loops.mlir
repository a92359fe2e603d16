// If the code for all packs of a row is too long, the plan says that the row is processed in loops over packs. A
// reduction ends a loop if another reduction depends on it. A row of two packs stays unrolled if the code of the loops
// would be no shorter.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 machine=unrolledInstructions=16 plan=any.lanes=32})" | FileCheck %s
// A row is also processed in loops if a lane could not hold its packs.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 machine=heldElements=7})" | FileCheck %s --check-prefix=HELD
// On a CPU, a row of several packs is.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3})" | FileCheck %s --check-prefix=CPU
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3 machine=loopPacks=16})" | FileCheck %s --check-prefix=SHORT
// A user may decide otherwise, and may give the elements that a lane keeps.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 plan=row_loops=yes,fast.kept_elements=16})" | FileCheck %s --check-prefix=GIVEN
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 machine=unrolledInstructions=16 plan=row_loops=no})" | FileCheck %s --check-prefix=NO
// The passes do what the plan says.
// RUN: %mlafix-opt %s --kernel=reductions --target=sm_90 --emit=mlir --mlafix-plan=row_loops=yes --variant=dense | FileCheck %s --check-prefix=LOOPS
// RUN: %mlafix-opt %s --kernel=reductions --target=sm_90 --emit=mlir --variant=dense | FileCheck %s --check-prefix=UNROLLED
// HELD-COUNT-3: row_loops = yes, loop_elements = 8, kept_elements = 7
// SHORT-NOT: row_loops
// GIVEN: @reductions_dense{{.*}}, row_loops = yes, loop_elements = 8, kept_elements = 64>
// GIVEN: @reductions_fast{{.*}}, row_loops = yes, loop_elements = 8, kept_elements = 16>
// GIVEN: @reductions_any
// GIVEN-NOT: row_loops
// GIVEN: @independent_dense
// NO: @independent_fast
// NO-NOT: row_loops
// NO: @independent_any
// NO-SAME: row_loops = yes
// LOOPS: alloca
// UNROLLED-NOT: alloca

!rows = memref<?x256xf32, strided<[?, 1], offset: ?>>
!tile = tensor<256xf32, #mlafix.dim<256>>
// CHECK: mlafix.kernel @reductions_dense(
// CHECK-SAME: layout = <lanes = 32, packs = 2, pack = 4,
// CHECK-NOT: row_loops
// CHECK: mlafix.kernel @reductions_any(
// CHECK-SAME: layout = <lanes = 32, packs = 8, pack = 1,
// CHECK-SAME: row_loops = yes, loop_elements = 8, kept_elements = 64>
// CPU: mlafix.kernel @reductions_any(
// CPU-SAME: layout = <lanes = 1, packs = 16, pack = 16, rows = 1>, row_loops = yes>
mlafix.kernel @reductions(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
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
// CHECK: mlafix.kernel @independent_dense(
// CHECK-SAME: packs = 2, pack = 4,
// CHECK-SAME: row_loops = yes
mlafix.kernel @independent(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %y: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"}) {
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

// CHECK: mlafix.kernel @rows_alone_dense(
// CHECK-SAME: packs = 2, pack = 4,
// CHECK-SAME: row_loops = yes
mlafix.kernel @rows_alone(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %w = arith.addf %v, %v : !tile
    %y = arith.mulf %w, %v : !tile
    mlafix.store %y, %x[%t] : !tile, !rows
  }
}
