// On a GPU, each lane that holds the extreme of a long row searches its own elements for the extreme's smallest index.
// A reduction finds the smallest of these indices. Lanes do not search in short rows, on a CPU, or if a lane has more
// elements than a limit. For bf16 elements on a target with instructions that convert bf16, the limit is higher, so
// lanes search in every row whose elements the lanes of a cluster can hold.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-states{target=sm_90}),canonicalize,cse)" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-states{target=sm_90 machine=byLaneElements=8192}),canonicalize,cse)" | FileCheck %s --check-prefix=ALL
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-states{target=x86-64-v3}),canonicalize,cse)" | FileCheck %s --check-prefix=ALL

!rows = memref<?x4096xf32, strided<[?, 1], offset: ?>>
!half = memref<?x32000xf16, strided<[?, 1], offset: ?>>
!bhalf = memref<?x32000xbf16, strided<[?, 1], offset: ?>>
!huge = memref<?x262145xbf16, strided<[?, 1], offset: ?>>
!col = memref<?xi32, strided<[1], offset: ?>>
!tile = tensor<4096xf32, #mlafix.dim<4096>>
!long = tensor<32000xf32, #mlafix.dim<32000>>
!longest = tensor<262145xf32, #mlafix.dim<262145>>

// CHECK-LABEL: mlafix.kernel @greatest
// CHECK: %[[ROW:.*]] = mlafix.load
// CHECK: %[[MOST:.*]] = mlafix.reduce max %[[ROW]]
// CHECK: %[[OWN:.*]] = mlafix.reduce max in_lane %[[ROW]]
// CHECK: %[[HAS:.*]] = arith.cmpf ugt, %[[OWN]]
// CHECK: %[[FOUND:.*]] = scf.if %[[HAS]]
// CHECK: arith.cmpf ugt, %[[ROW]]
// CHECK: mlafix.reduce min in_lane
// CHECK: } else {
// CHECK: %[[EACH:.*]] = mlafix.splat %[[FOUND]]
// CHECK: mlafix.reduce min %[[EACH]]
// ALL-LABEL: mlafix.kernel @greatest
// ALL-NOT: in_lane
mlafix.kernel @greatest(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "4096"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %best = mlafix.arg_reduce max %v : !tile
    mlafix.store %best, %y[%t] : i32, !col
  }
}

// CHECK-LABEL: mlafix.kernel @of_many
// CHECK-NOT: in_lane
mlafix.kernel @of_many(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !half {mlafix.dims = ["n", "32000"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !half -> !long
    %best = mlafix.arg_reduce min %v : !long
    mlafix.store %best, %y[%t] : i32, !col
  }
}

// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-states{target=sm_80}),canonicalize,cse)" | FileCheck %s --check-prefix=SM80
// CHECK-LABEL: mlafix.kernel @of_many_bf16
// CHECK: mlafix.reduce min in_lane
// CHECK-LABEL: mlafix.kernel @beyond_a_cluster
// CHECK-NOT: in_lane
// ALL-LABEL: mlafix.kernel @of_many_bf16
// SM80-LABEL: mlafix.kernel @of_many_bf16
// SM80-NOT: in_lane
mlafix.kernel @of_many_bf16(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !bhalf {mlafix.dims = ["n", "32000"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bhalf -> !long
    %best = mlafix.arg_reduce min %v : !long
    mlafix.store %best, %y[%t] : i32, !col
  }
}

mlafix.kernel @beyond_a_cluster(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !huge {mlafix.dims = ["n", "262145"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !huge -> !longest
    %best = mlafix.arg_reduce max %v : !longest
    mlafix.store %best, %y[%t] : i32, !col
  }
}
