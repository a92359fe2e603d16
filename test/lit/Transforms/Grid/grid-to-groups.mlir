// Groups of lanes share the merge loops of the rows of a dense grid. Only the first group executes the ops after the
// last of these loops.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid))" | FileCheck %s
// RUN: sed 's/attributes {guards.*} {/{/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 variant=dense})" | FileCheck %s --check-prefix=PLAN

// The plan estimates 32 registers for a thread, plus 8 for each of eight elements, so a multiprocessor holds 682
// threads.
// PLAN-LABEL: @merge_dense
// PLAN-SAME: threads_per_sm = 682, chunk_ahead_bytes = 144, single_chunk = yes, collected_chunks = 2, added_chunks = 8, streamed_bytes = 16
// PLAN-NOT: early_tables
// PLAN-LABEL: @lines_dense
// PLAN-SAME: early_tables = yes

!parts = memref<?x?x128xf32, strided<[?, ?, 1], offset: ?>>
!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
module attributes {mlafix.target = "sm_90"} {
  // CHECK-LABEL: mlafix.kernel @merge
  // CHECK-SAME: %group_threads: i32
  // CHECK-SAME: threads_per_sm = 1024
  mlafix.kernel @merge(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                       %x: !parts {mlafix.dims = ["k", "n", "D"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, threads_per_sm = 1024, dependent_launch = yes>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %out, %c0 : !rows
    %k = memref.dim %x, %c0 : !parts
    // CHECK: %[[SHIFT:.*]] = math.ctpop
    // CHECK: %[[GROUP:.*]] = arith.shrui %{{.*}}, %[[SHIFT]]
    // CHECK: %[[MEMBER:.*]] = arith.andi
    // CHECK: %[[GROUPS:.*]] = arith.shrui %{{.*}}, %[[SHIFT]]
    // CHECK: %[[STORED:.*]] = arith.andi
    // CHECK: arith.minui
    // CHECK: mlafix_thread.row lane %{{.*}} groups(%[[GROUP]], %[[GROUPS]], %group_threads, %[[MEMBER]]) {
    mlafix.forall (%t) in (%n) {
      %low = arith.constant 0xFF800000 : f32
      %zero = arith.constant 0.0 : f32
      %zeros = mlafix.splat %zero : f32 -> !tile
      // CHECK: mlafix.merge_loop
      %m, %s, %acc = mlafix.merge_loop %i = %c0 to %k step 1 init(%low, %zero, %zeros) : f32, f32, !tile attributes {base = #mlafix.base<e>} {
        %v = mlafix.load %x[%i, %t] : !parts -> !tile
        %one = arith.constant 1.0 : f32
        mlafix.yield %one, %one, %v : f32, f32, !tile
      }
      // CHECK: mlafix.yield
      // CHECK-NEXT: }
      // CHECK-NEXT: scf.if %[[STORED]] {
      // CHECK-NEXT: mlafix.store %{{.*}}, %out
      // CHECK-NEXT: }
      mlafix.store %acc, %out[%t] : !tile, !rows
    }
  }

  // Each thread of a block's first warp prefetches one line of the lses. All blocks together prefetch all lines.
  // CHECK-LABEL: mlafix.kernel @lines
  // CHECK: %[[EARLY:.*]] = arith.cmpi ult, %[[THREAD:.*]], %c32_i32
  // CHECK: scf.if %[[EARLY]] {
  // CHECK: %[[BLOCKS:.*]] = nvvm.read.ptx.sreg.nctaid.x
  // CHECK: %[[FIRST:.*]] = arith.muli %[[THREAD]], %[[BLOCKS]]
  // CHECK: %[[LINE:.*]] = arith.addi %[[FIRST]], %{{.*}}
  // CHECK: %[[LINES:.*]] = mlafix_thread.table_lines %e
  // CHECK: %[[COUNT:.*]] = arith.trunci %[[LINES]]
  // CHECK: %[[EXISTS:.*]] = arith.cmpi ult, %[[LINE]], %[[COUNT]]
  // CHECK: scf.if %[[EXISTS]] {
  // CHECK: memref.prefetch %e
  // CHECK: nvvm.griddepcontrol wait
  mlafix.kernel @lines(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                       %x: !parts {mlafix.dims = ["k", "n", "D"], mlafix.access = "read"},
                       %e: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["k", "n"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, early_tables = yes, dependent_launch = yes>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %out, %c0 : !rows
    %k = memref.dim %x, %c0 : !parts
    mlafix.forall (%t) in (%n) {
      %low = arith.constant 0xFF800000 : f32
      %zero = arith.constant 0.0 : f32
      %zeros = mlafix.splat %zero : f32 -> !tile
      %m, %s, %acc = mlafix.merge_loop %i = %c0 to %k step 1 init(%low, %zero, %zeros) : f32, f32, !tile attributes {base = #mlafix.base<e>} {
        %v = mlafix.load %x[%i, %t] : !parts -> !tile
        %lse = mlafix.load %e[%i, %t] : memref<?x?xf32, strided<[?, ?], offset: ?>> -> f32
        %one = arith.constant 1.0 : f32
        mlafix.yield %lse, %one, %v : f32, f32, !tile
      }
      mlafix.store %acc, %out[%t] : !tile, !rows
    }
  }
}
