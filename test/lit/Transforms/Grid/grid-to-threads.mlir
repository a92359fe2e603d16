// A dense grid on a GPU: a thread computes its lane and its row, and executes the row's program if the row exists.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid))" | FileCheck %s --check-prefixes=CHECK,FIXED
// RUN: sed 's/dependent_launch = yes/&, least_threads = 128/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid))" | FileCheck %s --check-prefixes=CHECK,ADAPT

!rows = memref<?x16x128xf32, strided<[?, ?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
module attributes {mlafix.target = "sm_90"} {
  // CHECK-LABEL: mlafix.kernel @double
  // ADAPT-SAME: threads = 256, least_threads = 128
  // FIXED-SAME: threads = 256, least_threads = 256
  mlafix.kernel @double(%x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 16>, dependent_launch = yes>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %n = memref.dim %x, %c0 : !rows
    // CHECK: %[[ID:.*]] = nvvm.read.ptx.sreg.tid.x
    // CHECK: %[[LANE:.*]] = arith.index_castui %{{.*}} : i32 to index
    // CHECK: %[[MASK:.*]] = arith.shli
    // ADAPT: nvvm.read.ptx.sreg.ntid.x
    // FIXED-NOT: nvvm.read.ptx.sreg.ntid.x
    // CHECK: nvvm.read.ptx.sreg.ctaid.x
    // CHECK: %[[H:.*]] = arith.remui
    // CHECK: %[[T:.*]] = arith.divui
    // CHECK: %[[IS_ROW:.*]] = arith.cmpi ult
    // CHECK: nvvm.griddepcontrol wait
    // CHECK: nvvm.griddepcontrol launch_dependents
    // CHECK: scf.if %[[IS_ROW]] {
    // CHECK-NEXT: mlafix_thread.row lane %[[LANE]] mask %[[MASK]] attributes {whole_warps} {
    // CHECK-NEXT: mlafix.load %x[%[[T]], %[[H]]]
    // CHECK: mlafix.store %{{.*}}, %x[%[[T]], %[[H]]]
    // CHECK-NEXT: }
    // CHECK-NOT: mlafix.forall
    mlafix.forall (%t, %h) in (%n, %c16) {
      %v = mlafix.load %x[%t, %h] : !rows -> !tile
      %w = arith.addf %v, %v : !tile
      mlafix.store %w, %x[%t, %h] : !tile, !rows
    }
  }

  // The grid has 7 n rows, two per warp. The last warp may have only one row, so there is no `whole_warps`.
  // CHECK-LABEL: mlafix.kernel @odd
  // CHECK: mlafix_thread.row lane %{{.*}} mask %{{[^ ]*}} {
  mlafix.kernel @odd(%x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 16>, dependent_launch = yes>} {
    %c0 = arith.constant 0 : index
    %c7 = arith.constant 7 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t, %h) in (%n, %c7) {
      %v = mlafix.load %x[%t, %h] : !rows -> !tile
      mlafix.store %v, %x[%t, %h] : !tile, !rows
    }
  }

  // Several blocks process the parts of one row, without waiting for each other.
  // CHECK-LABEL: mlafix.kernel @parts
  // CHECK-SAME: geometry = #mlafix.grid<[<arg = 0, dim = 0>] parts <value = 4>, rows_per_block = 1, threads = 256, least_threads = 256>
  // CHECK: %[[PART:.*]] = arith.remui %{{.*}}, %c4_i32
  // CHECK: arith.muli %[[PART]], %c512_i32
  // CHECK: %[[ROW:.*]] = arith.divui %{{.*}}, %c4_i32
  // CHECK: mlafix_thread.row lane %{{[^ ]*}} attributes {whole_warps} {
  mlafix.kernel @parts(%x: memref<?x15000xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [#mlafix.guard<max_rows, value = 2147483647>],
                  plan = #mlafix.plan<layout = <lanes = 256, packs = 2, pack = 8, rows = 1, parts = 4>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : memref<?x15000xf32, strided<[?, 1], offset: ?>>
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : memref<?x15000xf32, strided<[?, 1], offset: ?>> -> tensor<15000xf32, #mlafix.dim<15000>>
      mlafix.store %v, %x[%t] : tensor<15000xf32, #mlafix.dim<15000>>, memref<?x15000xf32, strided<[?, 1], offset: ?>>
    }
  }

  // The launch computes the number of parts from the size of the row. The number is at least 1, also for an empty row.
  // CHECK-LABEL: mlafix.kernel @ends
  // CHECK-SAME: geometry = #mlafix.grid<[<arg = 0, dim = 0>] parts <arg = 0, dim = 1, per = 4096>, rows_per_block = 1
  // CHECK: %[[SIZE:.*]] = memref.dim
  // CHECK: %[[COUNT:.*]] = arith.maxui
  // CHECK: arith.remui %{{.*}}, %[[COUNT]]
  mlafix.kernel @ends(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "v"], mlafix.access = "update"})
      attributes {most = {v = 15000}, guards = [#mlafix.guard<max_rows, value = 2147483647>, #mlafix.guard<multiple, arg = 0, dim = 1, value = 8>],
                  plan = #mlafix.plan<layout = <lanes = 256, packs = 2, pack = 8, rows = 1, parts = 4>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<15000xf32, #mlafix.dim<"v" most 15000 by 8>>
      mlafix.store %v, %x[%t] : tensor<15000xf32, #mlafix.dim<"v" most 15000 by 8>>, memref<?x?xf32, strided<[?, 1], offset: ?>>
    }
  }
}
