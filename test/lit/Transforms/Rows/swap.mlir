// A swap exchanges neighbouring blocks of elements. Blocks may be exchanged within a pack, between lanes of a warp, or
// between warps through shared memory. A swap of whole packs of a lane needs no instruction.
// RUN: %mlafix-opt %s --split-input-file --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-rows-to-packs))" | FileCheck %s

!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: mlafix.kernel @swap
  mlafix.kernel @swap(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    // CHECK: mlafix_thread.row lane %[[LANE:.*]] mask %[[MASK:.*]] {
    mlafix.forall (%t) in (%n) {
      // CHECK: %[[A:.*]] = vector.load %x
      // CHECK: %[[B:.*]] = vector.load %x
      %v = mlafix.load %x[%t] : !rows -> !tile
      // CHECK: %[[A2:.*]] = vector.shuffle %[[A]], %[[A]] [2, 3, 0, 1]
      // CHECK: %[[B2:.*]] = vector.shuffle %[[B]], %[[B]] [2, 3, 0, 1]
      %in_pack = mlafix.swap %v by 2 : !tile
      // CHECK-COUNT-4: nvvm.shfl.sync bfly %[[MASK]], %{{.*}}, %c8_i32
      // CHECK: %[[A3:.*]] = vector.from_elements
      // CHECK-COUNT-4: nvvm.shfl.sync bfly %[[MASK]]
      // CHECK: %[[B3:.*]] = vector.from_elements
      %in_warp = mlafix.swap %in_pack by 32 : !tile
      // CHECK-NOT: nvvm.shfl
      %packs = mlafix.swap %in_warp by 64 : !tile
      // CHECK: vector.store %[[B3]], %x
      // CHECK: vector.store %[[A3]], %x
      mlafix.store %packs, %x[%t] : !tile, !rows
    }
  }
}

// -----

!rows = memref<?x512xf32, strided<[?, 1], offset: ?>>
!tile = tensor<512xf32, #mlafix.dim<512>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: mlafix.kernel @across_warps
  mlafix.kernel @across_warps(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 128, packs = 1, pack = 4, rows = 1>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      // CHECK: memref.alloca() : memref<512xf32, #mlafix_thread.scratch>
      // CHECK: arith.xori %{{.*}}, %c64
      // CHECK-COUNT-4: memref.store
      // CHECK: nvvm.barrier
      // CHECK-COUNT-4: memref.load
      // CHECK: nvvm.barrier
      %v = mlafix.load %x[%t] : !rows -> !tile
      %w = mlafix.swap %v by 256 : !tile
      mlafix.store %w, %x[%t] : !tile, !rows
    }
  }
}

// -----

// Four of the eight packs are exchanged at once, since shared memory is limited to 32 KB.
!rows = memref<?x16384xf32, strided<[?, 1], offset: ?>>
!tile = tensor<16384xf32, #mlafix.dim<16384>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: mlafix.kernel @in_two_rounds
  mlafix.kernel @in_two_rounds(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 512, packs = 8, pack = 4, rows = 1>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      // CHECK: memref.alloca() : memref<8192xf32, #mlafix_thread.scratch>
      // CHECK-COUNT-16: memref.store
      // CHECK: nvvm.barrier
      // CHECK-COUNT-16: memref.load
      // CHECK: nvvm.barrier
      // CHECK-COUNT-16: memref.store
      // CHECK: nvvm.barrier
      // CHECK-COUNT-16: memref.load
      // CHECK: nvvm.barrier
      // CHECK-NOT: memref.alloca
      %v = mlafix.load %x[%t] : !rows -> !tile
      %w = mlafix.swap %v by 1024 : !tile
      mlafix.store %w, %x[%t] : !tile, !rows
    }
  }
}

// -----

// mlafix.load_into reads a short row into a longer one, from an element of the longer row on. If the index of this
// element is a multiple of a pack's 4 elements (96), each load fills a pack. Otherwise (97), each load reads one
// element.
!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
!short = memref<?x16xf32, strided<[?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: mlafix.kernel @into
  mlafix.kernel @into(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                      %z: !short {mlafix.dims = ["n", "16"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      // CHECK: arith.cmpi uge, %{{.*}}, %c96
      // CHECK: vector.maskedload %z{{.*}} into vector<2xf32>
      // CHECK: vector.shuffle %{{.*}} [0, 0, 1, 1]
      %v = mlafix.load_into %z[%t] from 96 each 2 : !short -> !tile
      mlafix.store %v, %x[%t] : !tile, !rows
      // CHECK-COUNT-8: vector.maskedload %z{{.*}} into vector<1xf32>
      %w = mlafix.load_into %z[%t] from 97 : !short -> !tile
      mlafix.store %w, %y[%t] : !tile, !rows
    }
  }
}
