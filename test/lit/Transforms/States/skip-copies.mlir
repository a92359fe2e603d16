// A call is in place if the output is the tensor of one of the merged states. If it is, and all other states are
// excluded, a branch skips the merge. The row is then written only if its lse is infinite or NaN.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-skip-copies,canonicalize))" | FileCheck %s

!rows = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!col = memref<?xf32, strided<[1], offset: ?>>
!state = !mlafix.state<64, e>

// CHECK-LABEL: @threshold
mlafix.kernel @threshold(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %out_lse: !col {mlafix.dims = ["n"], mlafix.access = "write", mlafix.optional},
    %a: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %a_lse: !col {mlafix.dims = ["n"], mlafix.access = "read"},
    %b: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %b_lse: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %limit: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // CHECK: %[[BEFORE:.*]] = arith.cmpi ult
    // CHECK: %[[OUT:.*]] = mlafix.same_tensor %out, %b
    // CHECK: %[[GIVEN:.*]] = mlafix.present %out_lse
    // CHECK: %[[ABSENT:.*]] = arith.xori %[[GIVEN]]
    // CHECK: %[[LSE:.*]] = mlafix.same_tensor %out_lse, %b_lse
    // CHECK: %[[KEPT:.*]] = arith.ori %[[LSE]], %[[ABSENT]]
    // CHECK: %[[IN_PLACE:.*]] = arith.andi %[[OUT]], %[[KEPT]]
    // CHECK: %[[ELSEWHERE:.*]] = arith.xori %[[IN_PLACE]]
    // CHECK: %[[CHANGES:.*]] = arith.ori %[[ELSEWHERE]], %[[BEFORE]]
    // CHECK: scf.if %[[CHANGES]] {
    // CHECK-NEXT: mlafix.load_state %a{{.*}} if %[[BEFORE]]
    // CHECK-NEXT: mlafix.load_state %b
    // CHECK-NEXT: mlafix.merge
    // CHECK-NEXT: mlafix.store_state
    // CHECK-NEXT: } else {
    // Where the merge is skipped, only the lse is loaded. If the lse is infinite, the identity replaces the row. If the
    // lse is NaN, NaN replaces the row.
    // CHECK-NOT: mlafix.load %b[
    // CHECK: mlafix.load %b_lse
    // CHECK: %[[STORED:.*]] = arith.cmpf ueq
    // CHECK: mlafix.store %{{.*}}, %out[%{{.*}}] if %[[STORED]]
    // CHECK: mlafix.store %{{.*}}, %out_lse[%{{.*}}] if %[[STORED]]
    %before = arith.cmpi ult, %t, %limit : index
    %x = mlafix.load_state %a[%t] lse %a_lse[%t] if %before : !rows, !col -> !state
    %y = mlafix.load_state %b[%t] lse %b_lse[%t] : !rows, !col -> !state
    %m = mlafix.merge %x, %y : !state
    mlafix.store_state %m to %out[%t] lse %out_lse[%t] : !state, !rows, !col
  }
}

!halves = memref<?x64xf16, strided<[?, 1], offset: ?>>

// None of these four merges can be skipped. Their reasons, in order:
//
//   - Both states are always merged.
//   - The output has another dtype than the state's rows.
//   - The row that is written is not the row that is read.
//   - The result is scaled.
//
// CHECK-LABEL: @always
// CHECK-NOT: scf.if
mlafix.kernel @always(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %other: !halves {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %a: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %a_lse: !col {mlafix.dims = ["n"], mlafix.access = "read"},
    %b: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %b_lse: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %limit: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %before = arith.cmpi ult, %t, %limit : index
    %x = mlafix.load_state %a[%t] lse %a_lse[%t] : !rows, !col -> !state
    %y = mlafix.load_state %b[%t] lse %b_lse[%t] : !rows, !col -> !state
    %m = mlafix.merge %x, %y : !state
    mlafix.store_state %m to %out[%t] : !state, !rows
    %p = mlafix.load_state %a[%t] lse %a_lse[%t] if %before : !rows, !col -> !state
    %q = mlafix.load_state %b[%t] lse %b_lse[%t] : !rows, !col -> !state
    %r = mlafix.merge %p, %q : !state
    mlafix.store_state %r to %other[%t] : !state, !halves
    %u = mlafix.load_state %a[%t] lse %a_lse[%t] if %before : !rows, !col -> !state
    %v = mlafix.load_state %b[%c0] lse %b_lse[%c0] : !rows, !col -> !state
    %w = mlafix.merge %u, %v : !state
    mlafix.store_state %w to %out[%t] : !state, !rows
    %scale = arith.constant 2.0 : f32
    %c = mlafix.load_state %a[%t] lse %a_lse[%t] if %before : !rows, !col -> !state
    %d = mlafix.load_state %b[%t] lse %b_lse[%t] : !rows, !col -> !state
    %e = mlafix.merge %c, %d : !state
    mlafix.store_state %e to %out[%t] scale %scale : !state, !rows
  }
}
