// A sum or a maximum that selects one element of a row becomes a load of that element. If the row's tensor may also
// be an output, nothing changes.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-load-one-hot,canonicalize))" | FileCheck %s
// The maximum of an element and 0 may be 0, so it does not select the element. Two f4 elements share a byte, so a single
// one cannot be loaded. In both cases, the maximum stays.
// RUN: sed 's/0xFF800000/0.0/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-load-one-hot,canonicalize))" | FileCheck %s --check-prefix=STAYS
// RUN: sed 's/xbf16/xf4E2M1FN/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-load-one-hot,canonicalize))" | FileCheck %s --check-prefix=STAYS

!rows = memref<?x512xbf16, strided<[?, 1], offset: ?>>
!col = memref<?xf32, strided<[?], offset: ?>>
!ids = memref<?xi32, strided<[?], offset: ?>>
!tile = tensor<512xf32, #mlafix.dim<512>>
!numbers = tensor<512xi32, #mlafix.dim<512>>

// CHECK-LABEL: mlafix.kernel @target
// CHECK: %[[LABEL:.*]] = mlafix.load %labels
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[LABEL]], %c512_i32
// CHECK: %[[AT:.*]] = arith.index_castui %[[LABEL]] : i32 to index
// CHECK: %[[X:.*]] = mlafix.load %x[%{{.*}}, %[[AT]]] if %[[INSIDE]] : {{.*}} -> f32
// CHECK: %[[HALF:.*]] = arith.mulf %[[X]], %{{.*}} : f32
// CHECK: %[[HERE:.*]] = arith.select %[[INSIDE]], %[[HALF]], %{{.*}} : f32
// CHECK: %[[SUM:.*]] = arith.addf %[[HERE]], %{{.*}} : f32
// CHECK: mlafix.store %[[SUM]], %y
// CHECK-NOT: mlafix.reduce
mlafix.kernel @target(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "V"], mlafix.access = "read"},
                      %labels: !ids {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant dense<0.0> : !tile
    %half = arith.constant dense<0.5> : !tile
    %row = mlafix.load %x[%t] : !rows -> !tile
    %scaled = arith.mulf %row, %half : !tile
    %label = mlafix.load %labels[%t] : !ids -> i32
    %all = mlafix.splat %label : i32 -> !numbers
    %i = mlafix.iota : !numbers
    %here = arith.cmpi eq, %i, %all : !numbers
    %one = arith.select %here, %scaled, %zero : tensor<512xi1, #mlafix.dim<512>>, !tile
    %s = mlafix.reduce add %one : !tile
    mlafix.store %s, %y[%t] : f32, !col
  }
}

// In a call in place, y is the same tensor as x, so the memory of the row is written and the sum stays.
// CHECK-LABEL: mlafix.kernel @in_place
// CHECK: mlafix.reduce add
mlafix.kernel @in_place(%y: !rows {mlafix.dims = ["n", "V"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "V"], mlafix.access = "read"},
                        %labels: !ids {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant dense<0.0> : !tile
    %row = mlafix.load %x[%t] : !rows -> !tile
    %label = mlafix.load %labels[%t] : !ids -> i32
    %all = mlafix.splat %label : i32 -> !numbers
    %i = mlafix.iota : !numbers
    %here = arith.cmpi eq, %i, %all : !numbers
    %one = arith.select %here, %row, %zero : tensor<512xi1, #mlafix.dim<512>>, !tile
    %s = mlafix.reduce add %one : !tile
    %sums = mlafix.splat %s : f32 -> !tile
    mlafix.store %sums, %y[%t] : !tile, !rows
  }
}

// The maximum of an element and -inf is the element, so the loaded element is stored as it is.
// CHECK-LABEL: mlafix.kernel @maximum
// CHECK: %[[LEAST:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult
// CHECK: %[[X:.*]] = mlafix.load %x[%{{.*}}] if %[[INSIDE]] : {{.*}} -> f32
// CHECK: %[[HERE:.*]] = arith.select %[[INSIDE]], %[[X]], %[[LEAST]] : f32
// CHECK-NEXT: mlafix.store %[[HERE]], %y
// CHECK-NOT: mlafix.reduce
// STAYS-LABEL: mlafix.kernel @maximum
// STAYS: mlafix.load %x{{.*}} -> tensor<512xf32
// STAYS: mlafix.reduce max
mlafix.kernel @maximum(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "V"], mlafix.access = "read"},
                       %labels: !ids {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %least = arith.constant 0xFF800000 : f32
    %others = mlafix.splat %least : f32 -> !tile
    %row = mlafix.load %x[%t] : !rows -> !tile
    %label = mlafix.load %labels[%t] : !ids -> i32
    %all = mlafix.splat %label : i32 -> !numbers
    %i = mlafix.iota : !numbers
    %here = arith.cmpi eq, %i, %all : !numbers
    %one = arith.select %here, %row, %others : tensor<512xi1, #mlafix.dim<512>>, !tile
    %s = mlafix.reduce max %one : !tile
    mlafix.store %s, %y[%t] : f32, !col
  }
}
