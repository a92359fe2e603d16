// A merge of one state folds to the state.
// RUN: %mlafix-opt %s --canonicalize | FileCheck %s

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!state = !mlafix.state<"D", e>

mlafix.kernel @single(%out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %n) {
    // CHECK: %[[E:.*]] = mlafix.identity
    // CHECK-NEXT: mlafix.store_state %[[E]]
    %e = mlafix.identity : !state
    %m = mlafix.merge %e : !state
    mlafix.store_state %m to %out[%t, %h] : !state, !rows
  }
}
