// Rows are ordered so that consecutive rows have consecutive scalars in memory. Small tensors of scalars are prefetched
// by lines.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid))" | FileCheck %s
// RUN: sed 's/, row_bundle = 8, early_tables = yes//' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid))" | FileCheck %s --check-prefix=OFF
// Rows that are not contiguous keep their order.
// RUN: sed 's/strided<.2048, 128, 1./strided<[?, ?, 1]/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid))" | FileCheck %s --check-prefix=APART
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-distribute),canonicalize,cse,mlafix-to-nvvm)" | FileCheck %s --check-prefix=LOW
// RUN: sed 's/attributes {.*} {/{/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 variant=dense})" | FileCheck %s --check-prefix=PLAN

// PLAN-LABEL: @scale_dense
// PLAN-SAME: plain_rows = yes, {{.*}}row_bundle = 8, early_tables = yes
// PLAN-LABEL: @few_dense
// PLAN-NOT: early_tables
// PLAN-LABEL: @six_dense
// PLAN-SAME: row_bundle = 8, early_tables = yes
// PLAN-LABEL: @narrowed_dense
// PLAN-NOT: {{plain_rows|row_bundle|early_tables}}
// PLAN-LABEL: @beside_dense
// PLAN-SAME: plain_rows = yes
// PLAN-NOT: {{row_bundle|early_tables}}

!rows = memref<?x16x128xf32, strided<[2048, 128, 1], offset: ?>>
!lses = memref<16x?xf32, strided<[?, ?], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
// OFF-NOT: {{extract_strided_metadata|table_lines|memref.prefetch}}
module attributes {mlafix.target = "sm_90"} {
  // CHECK-LABEL: mlafix.kernel @scale
  // APART-LABEL: mlafix.kernel @scale
  // APART-NOT: extract_strided_metadata
  // APART: mlafix_thread.table_lines
  // LOW-LABEL: llvm.func @scale
  // LOW-SAME: params = [<pointer, arg = 0>, <size, arg = 0, dim = 0>, <pointer, arg = 1>, <lines, arg = 1>, <stride, arg = 1, dim = 0>, <stride, arg = 1, dim = 1>, <local>]
  mlafix.kernel @scale(%x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "update"},
                       %s: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 8>, dependent_launch = yes, plain_rows = yes, row_bundle = 8, early_tables = yes>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %n = memref.dim %x, %c0 : !rows
    // Rows are in bundles of eight tokens if the stride of s along tokens is 1. Tokens that do not fill a bundle come
    // last.
    // CHECK: %strides:2 = memref.extract_strided_metadata %s
    // CHECK: %[[UNIT:.*]] = arith.cmpi eq, %strides#1, %c1{{.*}} : index
    // CHECK: %[[WHOLE:.*]] = arith.andi %dim, %c-8
    // CHECK: %[[ROWS:.*]] = arith.muli %[[WHOLE]], %c16
    // CHECK: %[[IN_WHOLE:.*]] = arith.cmpi ult, %[[ROW:.*]], %[[ROWS]]
    // CHECK: %[[IN:.*]] = arith.andi %[[UNIT]], %[[IN_WHOLE]]
    // CHECK: %[[PAIR:.*]] = arith.shrui %[[ROW]], %c3
    // CHECK: %[[PLAIN_T:.*]] = arith.shrui %[[ROW]], %c4
    // CHECK: %[[T8:.*]] = arith.andi %[[PLAIN_T]], %c-8
    // CHECK: %[[LAST:.*]] = arith.andi %[[ROW]], %c7
    // CHECK: %[[TILE_T:.*]] = arith.ori %[[T8]], %[[LAST]]
    // CHECK: %[[T:.*]] = arith.select %[[IN]], %[[TILE_T]], %[[PLAIN_T]]
    // CHECK: %[[WHERE:.*]] = arith.select %[[IN]], %[[PAIR]], %[[ROW]]
    // CHECK: %[[H:.*]] = arith.andi %[[WHERE]], %c15
    // The first thread of block b prefetches line b of the lses.
    // CHECK: %[[FIRST:.*]] = arith.cmpi ult, %{{.*}}, %c1_i32
    // CHECK: scf.if %[[FIRST]] {
    // CHECK: %[[LINES:.*]] = mlafix_thread.table_lines %s
    // CHECK: %[[COUNT:.*]] = arith.trunci %[[LINES]] : i64 to i32
    // CHECK: %[[EXISTS:.*]] = arith.cmpi ult, %[[BLOCK:.*]], %[[COUNT]] : i32
    // CHECK: scf.if %[[EXISTS]] {
    // CHECK: memref.prefetch %s[%c0{{.*}}, %{{.*}}], read
    // CHECK: nvvm.griddepcontrol wait
    // CHECK: mlafix.load %x[%[[T]], %[[H]]]
    // CHECK: mlafix.load %s[%[[H]], %[[T]]]
    // LOW: llvm.icmp "ne"
    // LOW: scf.if
    // LOW: prefetch.global.L2 [$0];
    // LOW: griddepcontrol.wait
    mlafix.forall (%t, %h) in (%n, %c16) {
      %v = mlafix.load %x[%t, %h] : !rows -> !tile
      %f = mlafix.load %s[%h, %t] : !lses -> f32
      %k = mlafix.splat %f : f32 -> !tile
      %w = arith.mulf %v, %k : !tile
      mlafix.store %w, %x[%t, %h] : !tile, !rows
    }
  }

  // Neither s, which fits into one cache line, nor y, which the kernel also writes, is prefetched.
  // CHECK-LABEL: mlafix.kernel @few
  // CHECK-NOT: table_lines
  mlafix.kernel @few(%x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "update"},
                     %s: memref<16xf32> {mlafix.dims = ["H"], mlafix.access = "read"},
                     %y: !lses {mlafix.dims = ["H", "n"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 8>, dependent_launch = yes, plain_rows = yes, row_bundle = 8, early_tables = yes>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t, %h) in (%n, %c16) {
      %v = mlafix.load %x[%t, %h] : !rows -> !tile
      %f = mlafix.load %s[%h] : memref<16xf32> -> f32
      %g = mlafix.load %y[%h, %t] : !lses -> f32
      %k = mlafix.splat %f : f32 -> !tile
      %w = arith.mulf %v, %k : !tile
      mlafix.store %w, %x[%t, %h] : !tile, !rows
      mlafix.store %g, %y[%h, %t] : f32, !lses
    }
  }

  // The number of heads is not a power of two, so the code divides the row's number by it.
  // CHECK-LABEL: mlafix.kernel @six
  // CHECK: %[[UNIT:.*]] = arith.cmpi eq, %strides#1, %c1{{.*}} : index
  // CHECK: %[[IN_WHOLE:.*]] = arith.cmpi ult, %[[ROW:.*]], %{{.*}}
  // CHECK: %[[IN:.*]] = arith.andi %[[UNIT]], %[[IN_WHOLE]]
  // CHECK: %[[SHIFT:.*]] = arith.select %[[IN]], %c3{{.*}}, %c0
  // CHECK: %[[LAST:.*]] = arith.select %[[IN]], %c7{{.*}}, %c0
  // CHECK: %[[NUMBER:.*]] = arith.shrui %[[ROW]], %[[SHIFT]]
  // CHECK: %[[H:.*]] = arith.remui %[[NUMBER]], %c6
  // CHECK: %[[T8:.*]] = arith.divui %[[NUMBER]], %c6
  // CHECK: %[[T0:.*]] = arith.shli %[[T8]], %[[SHIFT]]
  // CHECK: %[[REST:.*]] = arith.andi %[[ROW]], %[[LAST]]
  // CHECK: %[[T:.*]] = arith.addi %[[T0]], %[[REST]]
  // CHECK: mlafix.load %x[%[[T]], %[[H]]]
  mlafix.kernel @six(%x: memref<?x6x128xf32, strided<[768, 128, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "update"},
                     %s: memref<6x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["H", "n"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 8>, dependent_launch = yes, plain_rows = yes, row_bundle = 8, early_tables = yes>} {
    %c0 = arith.constant 0 : index
    %c6 = arith.constant 6 : index
    %n = memref.dim %x, %c0 : memref<?x6x128xf32, strided<[768, 128, 1], offset: ?>>
    mlafix.forall (%t, %h) in (%n, %c6) {
      %v = mlafix.load %x[%t, %h] : memref<?x6x128xf32, strided<[768, 128, 1], offset: ?>> -> !tile
      %f = mlafix.load %s[%h, %t] : memref<6x?xf32, strided<[?, ?], offset: ?>> -> f32
      %k = mlafix.splat %f : f32 -> !tile
      %w = arith.mulf %v, %k : !tile
      mlafix.store %w, %x[%t, %h] : !tile, memref<?x6x128xf32, strided<[768, 128, 1], offset: ?>>
    }
  }

  // If rows are loaded and stored with different widths, they keep their order, and the kernel's scalars are not
  // prefetched. An lse [n, H] is not prefetched either, since a block loads only few of its lines.
  // CHECK-LABEL: mlafix.kernel @narrowed
  // CHECK-NOT: extract_strided_metadata
  // CHECK-NOT: table_lines
  // CHECK-LABEL: mlafix.kernel @beside
  // CHECK-NOT: table_lines
  mlafix.kernel @narrowed(%x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
                          %y: memref<?x16x128xbf16, strided<[2048, 128, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
                          %s: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 8>, dependent_launch = yes, row_bundle = 8, early_tables = yes>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t, %h) in (%n, %c16) {
      %v = mlafix.load %x[%t, %h] : !rows -> !tile
      %f = mlafix.load %s[%h, %t] : !lses -> f32
      %k = mlafix.splat %f : f32 -> !tile
      %w = arith.mulf %v, %k : !tile
      mlafix.store %w, %y[%t, %h] : !tile, memref<?x16x128xbf16, strided<[2048, 128, 1], offset: ?>>
    }
  }
  mlafix.kernel @beside(%x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "update"},
                        %s: memref<?x16xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["n", "H"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 8>, dependent_launch = yes, plain_rows = yes, row_bundle = 8, early_tables = yes>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t, %h) in (%n, %c16) {
      %v = mlafix.load %x[%t, %h] : !rows -> !tile
      %f = mlafix.load %s[%t, %h] : memref<?x16xf32, strided<[?, ?], offset: ?>> -> f32
      %k = mlafix.splat %f : f32 -> !tile
      %w = arith.mulf %v, %k : !tile
      mlafix.store %w, %x[%t, %h] : !tile, !rows
    }
  }
}
