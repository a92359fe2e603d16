// A long row is processed in loops over packs, one for each stage between two reductions (../distribute-loops.mlir). The
// plan says which rows are long.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-loop-over-packs))" | FileCheck %s
// RUN: sed 's/, row_loops = yes//' %s | %mlafix-opt --split-input-file --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-loop-over-packs))" | FileCheck %s --check-prefix=SHORT
// SHORT-NOT: vector.load

// The loop's variable is the index of the pack's first element.
!rows = memref<?x64xi32, strided<[?, 1], offset: ?>>
!tile = tensor<64xi32, #mlafix.dim<64>>
module attributes {mlafix.target = "x86-64-v3"} {
  // CHECK-LABEL: mlafix.kernel @iota
  mlafix.kernel @iota(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 4, pack = 16, rows = 1>, row_loops = yes>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      // CHECK: scf.for %{{.*}} = %begin
      // CHECK: scf.for %[[I:.*]] =
      // CHECK: %[[FIRST:.*]] = arith.index_cast %[[I]] : index to i32
      // CHECK: vector.broadcast %[[FIRST]]
      %i = mlafix.iota : !tile
      mlafix.store %i, %x[%t] : !tile, !rows
    }
  }
}

// -----

// A scan combines the totals of packs as a tree. For each bit of the number of packs (6, so 3 bits), the scan keeps the
// total of the last complete left half. A scan does not end a stage, so there is one loop over packs.
!rows = memref<?x96xf32, strided<[?, 1], offset: ?>>
!tile = tensor<96xf32, #mlafix.dim<96>>
module attributes {mlafix.target = "x86-64-v3"} {
  // CHECK-LABEL: mlafix.kernel @scan
  mlafix.kernel @scan(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 6, pack = 16, rows = 1>, row_loops = yes>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    // CHECK: %[[LEFT:.*]] = memref.alloca() : memref<3xf32>
    // CHECK-NOT: memref.alloca
    mlafix.forall (%t) in (%n) {
      // CHECK: scf.for %{{.*}} = %begin
      // CHECK: scf.for %[[I:.*]] =
      %v = mlafix.load %x[%t] : !rows -> !tile
      // CHECK-COUNT-4: vector.shuffle
      // CHECK: %[[TOTAL:.*]] = vector.extract %{{.*}}[15]
      // CHECK: %[[IS_RIGHT:.*]] = arith.cmpi eq
      // CHECK-NEXT: %[[BEFORE:.*]] = memref.load %[[LEFT]][%{{.*}}]
      // CHECK-NEXT: %[[KEPT:.*]] = arith.select %[[IS_RIGHT]], %[[BEFORE]], %[[TOTAL]]
      // CHECK-NEXT: memref.store %[[KEPT]], %[[LEFT]]
      // CHECK-COUNT-2: memref.store %{{.*}}, %[[LEFT]]
      // CHECK: vector.store %{{.*}}, %x[%{{.*}}, %[[I]]]
      // CHECK-NOT: scf.for
      %s = mlafix.scan add %v : !tile
      mlafix.store %s, %x[%t] : !tile, !rows
    }
  }
}

// -----

!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>
module attributes {mlafix.target = "x86-64-v3"} {
  mlafix.kernel @carried(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %p: i1)
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 4, pack = 16, rows = 1>, row_loops = yes>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : !rows -> !tile
      scf.if %p {
        // expected-error @below {{expected long rows to be used where they are made, got one from another block, which mlafix-spill-rows has not seen}}
        mlafix.store %v, %x[%t] : !tile, !rows
      }
    }
  }
}

// -----

// Reductions that do not depend on the order (extremes, sums of integers) combine packs element by element in the loop.
// The elements of the resulting pack are combined once, after the loop.
!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>
!ints = memref<?x64xi32, strided<[?, 1], offset: ?>>
!col = memref<?xf32, strided<[?], offset: ?>>
!sums = memref<?xi32, strided<[?], offset: ?>>
module attributes {mlafix.target = "x86-64-v3"} {
  // CHECK-LABEL: mlafix.kernel @extremes
  mlafix.kernel @extremes(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %k: !ints {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                          %y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %z: !sums {mlafix.dims = ["n"], mlafix.access = "write"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 4, pack = 16, rows = 1>, row_loops = yes>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      // CHECK-DAG: vector.store %{{.*}}, %[[MOST:.*]][%c0{{.*}}] : memref<16xf32>, vector<16xf32>
      // CHECK-DAG: vector.store %{{.*}}, %[[SUMS:.*]][%c0{{.*}}] : memref<16xi32>, vector<16xi32>
      // CHECK: scf.for
      // CHECK: %[[BEFORE:.*]] = vector.load %[[MOST]]
      // CHECK-NEXT: %[[MET:.*]] = arith.maximumf %[[BEFORE]], %{{.*}} : vector<16xf32>
      // CHECK-NEXT: vector.store %[[MET]], %[[MOST]]
      // CHECK: arith.addi %{{.*}} : vector<16xi32>
      // CHECK: }
      // CHECK-COUNT-15: arith.maximumf %{{.*}} : f32
      // CHECK-COUNT-15: arith.addi %{{.*}} : i32
      %v = mlafix.load %x[%t] : !rows -> tensor<64xf32, #mlafix.dim<64>>
      %w = mlafix.load %k[%t] : !ints -> tensor<64xi32, #mlafix.dim<64>>
      %most = mlafix.reduce max %v : tensor<64xf32, #mlafix.dim<64>>
      %sum = mlafix.reduce add %w : tensor<64xi32, #mlafix.dim<64>>
      mlafix.store %most, %y[%t] : f32, !col
      mlafix.store %sum, %z[%t] : i32, !sums
    }
  }
}
