// Scales in tiles of 128 x 4. Columns are contiguous, so that their strides follow from their sizes. The offset within
// a row of tiles is computed in 32 bits, and the offset of the row's first tile in 64 bits.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 variant=any},mlafix.kernel(mlafix-distribute),mlafix-to-nvvm,cse)" | FileCheck %s

!tiles = memref<?x2x8xf8E4M3FN, strided<[?, ?, 1], offset: ?>>
!wide = memref<?x2x4194305xf8E4M3FN, strided<[?, ?, 1], offset: ?>>
!open = memref<?x?x8xf8E4M3FN, strided<[?, ?, 1], offset: ?>>
!rows = memref<?xf32, strided<[?], offset: ?>>

// The only stride parameter is that of rows.
// CHECK-LABEL: llvm.func @few_any(
// CHECK-SAME: %[[TILES:[a-z0-9]+]]: !llvm.ptr<1>, %[[PITCH:[a-z0-9]+]]: i64, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: i64, %{{[a-z0-9]+}}: i64)
// CHECK: %[[TILE:.*]] = arith.shrui %[[ROW:.*]], %c7_i64 : i64
// CHECK: %[[BEFORE:.*]] = arith.muli %[[TILE]], %[[PITCH]] : i64
// CHECK: arith.trunci %{{.*}} : i64 to i32
// CHECK: arith.trunci %[[ROW]] : i64 to i32
// CHECK: arith.andi %{{.*}}, %c496_i32 : i32
// CHECK: arith.andi %{{.*}}, %c12_i32 : i32
// CHECK: arith.andi %{{.*}}, %c3_i32 : i32
// CHECK: arith.andi %{{.*}}, %c-512_i32 : i32
// CHECK: %[[WITHIN:.*]] = arith.extui %{{.*}} : i32 to i64
// CHECK: %[[ELEMENTS:.*]] = arith.muli %[[BEFORE]], %c128_i64 : i64
// CHECK: arith.addi %[[ELEMENTS]], %[[WITHIN]] : i64
mlafix.kernel @few(%y: !tiles {mlafix.dims = ["m", "H", "G"], mlafix.access = "update", mlafix.swizzle = "128x4"},
                   %x: !rows {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> f32
    mlafix.store %v, %y[%t, %c1, %c5] : f32, !tiles
  }
}

// In the next two kernels, 32 bits may not be enough within a row of tiles: the number of columns exceeds 2^23 in
// @many, and is unknown in @open.
// CHECK-LABEL: llvm.func @many_any(
// CHECK: arith.andi %{{.*}}, %c-512_i64 : i64
mlafix.kernel @many(%y: !wide {mlafix.dims = ["m", "H", "G"], mlafix.access = "update", mlafix.swizzle = "128x4"},
                    %x: !rows {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> f32
    mlafix.store %v, %y[%t, %c1, %t] : f32, !wide
  }
}

// CHECK-LABEL: llvm.func @open_any(
// CHECK: arith.andi %{{.*}}, %c-512_i64 : i64
mlafix.kernel @open(%y: !open {mlafix.dims = ["m", "h", "G"], mlafix.access = "update", mlafix.swizzle = "128x4"},
                    %x: !rows {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> f32
    mlafix.store %v, %y[%t, %t, %c0] : f32, !open
  }
}

// In tiles of 8 rows, rows are contiguous.
// CHECK-LABEL: llvm.func @low_any(
// CHECK: arith.shrui %{{.*}}, %c3_i64 : i64
// CHECK: arith.andi %{{.*}}, %c28_i32 : i32
// CHECK: arith.andi %{{.*}}, %c-32_i32 : i32
// CHECK: arith.muli %{{.*}}, %c8_i64 : i64
mlafix.kernel @low(%y: !tiles {mlafix.dims = ["m", "H", "G"], mlafix.access = "update", mlafix.swizzle = "8x4"},
                   %x: !rows {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> f32
    mlafix.store %v, %y[%t, %c1, %c5] : f32, !tiles
  }
}
