// A row is loaded under one condition, and the merged row is stored under another. The row is loaded together with its
// lse, and not later in the branch that stores the result.
// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx --variant=dense | FileCheck %s

!rows = memref<?x128xbf16, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>
!flags = memref<?xi1, strided<[?], offset: ?>>
!state = !mlafix.state<128, e>

// CHECK-LABEL: .entry k_dense(
// CHECK: ld.global.v4
// CHECK: ld.global.v4
// CHECK-NOT: ld.global.v4
// CHECK: ex2.approx
// CHECK-NOT: ld.global
// CHECK: st.global.v4
mlafix.kernel @k(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"},
                 %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %a: !lses {mlafix.dims = ["n"], mlafix.access = "read"},
                 %z: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %b: !lses {mlafix.dims = ["n"], mlafix.access = "read"},
                 %live: !flags {mlafix.dims = ["n"], mlafix.access = "read"}, %inside: !flags {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %p = mlafix.load %live[%t] : !flags -> i1
    %q = mlafix.load %inside[%t] : !flags -> i1
    %first = mlafix.load_state %x[%t] lse %a[%t] if %p : !rows, !lses -> !state
    %second = mlafix.load_state %z[%t] lse %b[%t] : !rows, !lses -> !state
    %sum = mlafix.merge %first, %second : !state
    mlafix.store_state %sum to %y[%t] if %q : !state, !rows
  }
}
