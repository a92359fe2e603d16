// If all ops that use a name (here base B or dim E) fold away before the name is bound, its default is removed. The
// defaults of other names stay.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(canonicalize)" | FileCheck %s

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>
!state = !mlafix.state<"D", "B">

// CHECK-LABEL: mlafix.kernel @never_stored(
// CHECK-SAME: attributes {defaults = {D = 64 : i64}}
// CHECK-NOT: mlafix.store_state
mlafix.kernel @never_stored(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"},
    %lse: !lses {mlafix.dims = ["n"], mlafix.access = "update"}) attributes {defaults = {B = "e", D = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %lse, %c0 : !lses
  mlafix.forall (%t) in (%n) {
    %false = arith.constant false
    %s = mlafix.identity : !state
    mlafix.store_state %s to %out[%t] lse %lse[%t] if %false : !state, !rows, !lses
  }
}

// CHECK-LABEL: mlafix.kernel @nothing_left(
// CHECK-NOT: defaults
mlafix.kernel @nothing_left(
    %lse: !lses {mlafix.dims = ["n"], mlafix.access = "update"}) attributes {defaults = {E = 8 : i64}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %lse, %c0 : !lses
  mlafix.forall (%t) in (%n) {
    %s = mlafix.identity : !mlafix.state<"E", e>
  }
}
