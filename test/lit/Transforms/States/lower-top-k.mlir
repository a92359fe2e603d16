// Tests top_k of a short row on a GPU. Each step finds the largest remaining element and its smallest index. Found
// elements are replaced by -inf.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-states{target=sm_90}),canonicalize,cse)" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-states{target=sm_90 machine=byIndexElements=32}),canonicalize,cse)" | FileCheck %s --check-prefix=KEYS
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-states{target=x86-64-v3}),canonicalize,cse)" | FileCheck %s --check-prefix=KEYS

!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>
!col = memref<?xi32, strided<[1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>
// KEYS: mlafix.reduce max {{.*}} : tensor<64xi64
// KEYS-NOT: mlafix.reduce min
// CHECK-LABEL: mlafix.kernel @best_two
// CHECK: %[[ROW:.*]] = mlafix.load
// CHECK: %[[IDS:.*]] = mlafix.iota
// CHECK: mlafix.reduce max %[[ROW]]
// CHECK: %[[HERE:.*]] = arith.cmpf ugt, %[[ROW]]
// CHECK: %[[LEFT:.*]] = arith.select %[[HERE]], %[[IDS]]
// CHECK: %[[FIRST:.*]] = mlafix.reduce min %[[LEFT]]
// CHECK: %[[ALL:.*]] = mlafix.splat %[[FIRST]]
// CHECK: %[[OTHER:.*]] = arith.cmpi ne, %[[IDS]], %[[ALL]]
// CHECK: %[[REST:.*]] = arith.select %[[OTHER]], %[[ROW]]
// CHECK: mlafix.reduce max %[[REST]]
// CHECK: %[[NEXT:.*]] = arith.cmpf ugt, %[[REST]]
// CHECK: arith.select %[[NEXT]], %[[IDS]]
// CHECK: %[[SECOND:.*]] = mlafix.reduce min
// If the last value is -inf, its element cannot be told from the found elements, which have been replaced by -inf. So a
// branch takes the smallest index that has not been found. If the last value is greater than -inf, all indices are
// right, and the branch is not taken.
// CHECK: %[[LEAST:.*]] = arith.cmpf oeq
// CHECK: %[[INDEX:.*]] = scf.if %[[LEAST]]
// CHECK: math.ctpop
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[SECOND]]
// CHECK: mlafix.store %[[INDEX]]
mlafix.kernel @best_two(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "64"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %best:4 = mlafix.top_k %v : !tile -> f32, f32, i32, i32
    mlafix.store %best#3, %y[%t] : i32, !col
  }
}

// A bf16 uses the high 16 bits of an f32, so the low 16 bits can hold the element's index. One reduction of these i32
// keys finds an element and its index, also on a CPU. An addition that wraps then moves the found key and all greater
// keys below the other keys, and keeps the order of the others. On a GPU, an addition of 0 gives all NaN elements the
// same bits, so no comparison looks for NaN.
// CHECK-LABEL: mlafix.kernel @of_few_bits
// CHECK-NOT: arith.cmpf uno
// CHECK: %[[FIRST:.*]] = mlafix.reduce max %[[ALL:.*]] : tensor<64xi32
// CHECK: %[[STEP:.*]] = arith.subi %c-2147483648_i32, %[[FIRST]]
// CHECK: %[[STEPS:.*]] = mlafix.splat %[[STEP]]
// CHECK: %[[TURNED:.*]] = arith.addi %[[ALL]], %[[STEPS]]
// CHECK: %[[NEXT:.*]] = mlafix.reduce max %[[TURNED]] : tensor<64xi32
// CHECK: arith.subi %[[NEXT]], %[[STEP]]
// CHECK-NOT: mlafix.reduce
// KEYS-LABEL: mlafix.kernel @of_few_bits
// KEYS-COUNT-2: mlafix.reduce max {{.*}} : tensor<64xi32
!halves = memref<?x64xbf16, strided<[?, 1], offset: ?>>
mlafix.kernel @of_few_bits(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !halves {mlafix.dims = ["n", "64"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !halves -> !tile
    %best:4 = mlafix.top_k %v : !tile -> f32, f32, i32, i32
    mlafix.store %best#3, %y[%t] : i32, !col
  }
}

// The analysis that finds the dtype of a row in memory looks through four nested selects, but not through five. So the
// first top_k reduces i32 keys, and the second does not.
// CHECK-LABEL: mlafix.kernel @of_selections
// CHECK: mlafix.reduce max {{.*}} : tensor<64xi32
// CHECK: mlafix.reduce max {{.*}} : tensor<64xf32
mlafix.kernel @of_selections(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !halves {mlafix.dims = ["n", "64"], mlafix.access = "read"}, %flags: !col {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %none = arith.constant 0.0 : f32
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %flag = mlafix.load %flags[%t] : !col -> i32
    %p = arith.cmpi eq, %flag, %zero : i32
    %v = mlafix.load %x[%t] : !halves -> !tile
    %w = mlafix.load %x[%t] if %p else %none : !halves -> !tile
    %s0 = arith.select %p, %v, %w : !tile
    %s1 = arith.select %p, %s0, %w : !tile
    %s2 = arith.select %p, %s1, %w : !tile
    %s3 = arith.select %p, %s2, %w : !tile
    %s4 = arith.select %p, %s3, %w : !tile
    %four:2 = mlafix.top_k %s3 : !tile -> f32, i32
    %five:2 = mlafix.top_k %s4 : !tile -> f32, i32
    %sum = arith.addi %four#1, %five#1 : i32
    mlafix.store %sum, %y[%t] : i32, !col
  }
}

// In a loaded row, an addition of 0 gives all NaN elements the same bits. If the row is computed, later passes may fold
// this addition away, so a comparison looks for NaN.
// CHECK-LABEL: mlafix.kernel @of_chosen
// CHECK: arith.cmpf uno
// CHECK: mlafix.reduce max {{.*}} : tensor<64xi32
mlafix.kernel @of_chosen(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !halves {mlafix.dims = ["n", "64"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !halves -> !tile
    %zeros = mlafix.splat %zero : f32 -> !tile
    %is = arith.cmpf une, %v, %zeros : !tile
    %w = arith.select %is, %v, %zeros : tensor<64xi1, #mlafix.dim<64>>, !tile
    %best:4 = mlafix.top_k %w : !tile -> f32, f32, i32, i32
    mlafix.store %best#3, %y[%t] : i32, !col
  }
}

// An f16 leaves 13 bits of an i32 key for an index. That is not enough for a row of more than 8192 elements, so its
// keys are i64.
// CHECK-LABEL: mlafix.kernel @of_many
// CHECK: mlafix.reduce max {{.*}} : tensor<8200xi64
!long = memref<?x8200xf16, strided<[?, 1], offset: ?>>
!longs = tensor<8200xf32, #mlafix.dim<8200>>
mlafix.kernel @of_many(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !long {mlafix.dims = ["n", "8200"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !long -> !longs
    %best:4 = mlafix.top_k %v : !longs -> f32, f32, i32, i32
    mlafix.store %best#3, %y[%t] : i32, !col
  }
}

// A row along a dim with a bound may have fewer elements than top_k has results. The missing results are -inf at index
// 0.
// CHECK-LABEL: mlafix.kernel @bounded
// CHECK: mlafix.reduce max {{.*}} : tensor<300xi64
// CHECK: %[[SIZE:.*]] = memref.dim %x, %
// CHECK: %[[ONE:.*]] = arith.cmpi ugt, %[[SIZE]], %c0
// CHECK: arith.select %[[ONE]], %{{.*}}, %c0_i32
// CHECK: %[[TWO:.*]] = arith.cmpi ugt, %[[SIZE]], %c1
// CHECK: arith.select %[[TWO]], %{{.*}}, %c0_i32
mlafix.kernel @bounded(%y: memref<?x2xi32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "2"], mlafix.access = "write"},
    %x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "v"], mlafix.access = "read"}) attributes {most = {v = 300}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %y, %c0 : memref<?x2xi32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<300xf32, #mlafix.dim<"v" most 300>>
    %best:4 = mlafix.top_k %v : tensor<300xf32, #mlafix.dim<"v" most 300>> -> f32, f32, i32, i32
    mlafix.store %best#2, %y[%t, %c0] : i32, memref<?x2xi32, strided<[?, 1], offset: ?>>
    mlafix.store %best#3, %y[%t, %c1] : i32, memref<?x2xi32, strided<[?, 1], offset: ?>>
  }
}
