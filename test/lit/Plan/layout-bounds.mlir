// Rows along a dim with a large bound. Code versions for smaller bounds, each with a guard, come before the version for
// the kernel's bound. The bound of a version decides its number of lanes.
// RUN: %mlafix-opt %s --split-input-file --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90})" | FileCheck %s
// RUN: %mlafix-opt %s --split-input-file --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3})" | FileCheck %s --check-prefix=CPU
// RUN: %mlafix-opt %s --split-input-file --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 machine=boundSteps=0})" | FileCheck %s --check-prefix=NONE

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!col = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<5000xf32, #mlafix.dim<"v" most 5000>>

// CHECK-LABEL: mlafix.kernel @sum_most256_whole_dense
// CHECK-SAME: guards = [#mlafix.guard<align, args = [0, 1], bytes = 16>
// CHECK-SAME: #mlafix.guard<multiple, arg = 0, dim = 1, value = 8>, #mlafix.guard<at_most, arg = 0, dim = 1, value = 256>
// CHECK-SAME: most = {v = 256 : i64}, plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 8, rows = {{[0-9]+}}>
// CHECK: arith.constant dense<2.000000e+00> : tensor<256xf32, #mlafix.dim<"v" most 256 by 8>>
// CHECK: mlafix.load %{{.*}} -> tensor<256xf32, #mlafix.dim<"v" most 256 by 8>>
// CHECK: mlafix.kernel @sum_most256_fast
// CHECK-SAME: guards = [#mlafix.guard<max_rows, value = {{[0-9]+}}>, #mlafix.guard<at_most, arg = 0, dim = 1, value = 256>]
// CHECK: mlafix.kernel @sum_most1024_whole_dense
// CHECK-SAME: lanes = 32, packs = 4, pack = 8
// CHECK: mlafix.kernel @sum_most1024_fast
// CHECK: mlafix.kernel @sum_most4096_whole_dense
// CHECK-SAME: lanes = 128, packs = 4, pack = 8
// CHECK: mlafix.kernel @sum_most4096_fast
// CHECK: mlafix.kernel @sum_whole_dense
// CHECK-NOT: at_most
// CHECK: mlafix.kernel @sum_fast
// CHECK: arith.constant dense<2.000000e+00> : tensor<5000xf32, #mlafix.dim<"v" most 5000>>
// CHECK: mlafix.kernel @sum_any
// CHECK-SAME: guards = []

// CPU: mlafix.kernel @sum_most1024_whole_any
// CPU-SAME: guards = [#mlafix.guard<multiple, arg = 0, dim = 1, value = 16>, #mlafix.guard<at_most, arg = 0, dim = 1, value = 1024>]
// CPU: mlafix.kernel @sum_most1024_any
// CPU: mlafix.kernel @sum_whole_any
// CPU: mlafix.kernel @sum_any

// NONE-NOT: at_most
mlafix.kernel @sum(%y: !rows {mlafix.dims = ["n", "v"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "v"], mlafix.access = "read"},
                   %s: !col {mlafix.dims = ["n"], mlafix.access = "write"}) attributes {most = {v = 5000}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %two = arith.constant dense<2.0> : !tile
    %v = mlafix.load %x[%t] : !rows -> !tile
    %w = arith.mulf %v, %two : !tile
    %sum = mlafix.reduce add %w : !tile
    mlafix.store %w, %y[%t] : !tile, !rows
    mlafix.store %sum, %s[%t] : f32, !col
  }
}

// -----

// Rows along two dims need a guard for each dim. A dim whose bound is already small has no guard.
!ints = memref<?xi32, strided<[1], offset: ?>>
!rows = memref<?x?xi32, strided<[?, 1], offset: ?>>

// CHECK-LABEL: mlafix.kernel @two_most128_whole_dense
// CHECK-SAME: #mlafix.guard<at_most, arg = 1, dim = 1, value = 128>, #mlafix.guard<at_most, arg = 0, dim = 1, value = 128>
// CHECK-SAME: most = {b = 128 : i64, c = 128 : i64}
// CHECK: mlafix.kernel @two_most512_whole_dense
// CHECK-SAME: #mlafix.guard<at_most, arg = 0, dim = 1, value = 512>
// CHECK-NOT: at_most
// CHECK-SAME: most = {b = 300 : i64, c = 512 : i64}
mlafix.kernel @two(%y: !rows {mlafix.dims = ["n", "c"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "b"], mlafix.access = "update"})
    attributes {most = {b = 300, c = 2000}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> tensor<300xi32, #mlafix.dim<"b" most 300>>
    mlafix.store %v, %x[%t] : tensor<300xi32, #mlafix.dim<"b" most 300>>, !rows
    %i = mlafix.iota : tensor<2000xi32, #mlafix.dim<"c" most 2000>>
    mlafix.store %i, %y[%t] : tensor<2000xi32, #mlafix.dim<"c" most 2000>>, !rows
  }
}

// The number of rows is a constant, so there are no code versions for smaller bounds.
!tile = tensor<1024xi32, #mlafix.dim<"b" most 1024>>
// CHECK-LABEL: mlafix.kernel @one_whole_dense
// CHECK-NOT: at_most
mlafix.kernel @one(%x: !ints {mlafix.dims = ["b"], mlafix.access = "update"}) attributes {most = {b = 1024}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %v = mlafix.load %x[] : !ints -> !tile
    %sums = mlafix.scan add %v : !tile
    mlafix.store %sums, %x[] : !tile, !ints
  }
}
