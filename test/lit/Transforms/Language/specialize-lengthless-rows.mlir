// A dim that only absent arguments have needs no size if nothing depends on the length of rows along this dim, for
// example if the kernel only stores the lse of a state. The specialisation then has no binding of the dim.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=v=absent})" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=v=absent,D=64})" | FileCheck %s --check-prefix=GIVEN
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=v=present})" 2>&1 | FileCheck %s --check-prefix=PRESENT
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize)" 2>&1 | FileCheck %s --check-prefix=PRESENT
// RUN: %mlafix-opt %s --specialize=v=absent --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: %mlafix-opt %s --specialize=v=absent --target=x86-64-v3 --emit=llvm -o /dev/null

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>
!state = !mlafix.state<"D", e>

// CHECK-LABEL: mlafix.kernel @lse_alone(
// CHECK-SAME: bindings = {v = "absent"}
// CHECK-NOT: "D", e
// GIVEN-LABEL: mlafix.kernel @lse_alone(
// GIVEN-SAME: bindings = {D = 64 : i64, v = "absent"}
// PRESENT: error: expected a size for dim 'D' of kernel 'lse_alone', got no binding of it
// PTX: .entry lse_alone_
mlafix.kernel @lse_alone(
    %lse: !lses {mlafix.dims = ["n"], mlafix.access = "update"},
    %v: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read", mlafix.optional},
    %v_lse: !lses {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %lse, %c0 : !lses
  mlafix.forall (%t) in (%n) {
    %s = mlafix.load_state %v[%t] lse %v_lse[%t] : !rows, !lses -> !state
    %row = mlafix.load %v[%t] : !rows -> !tile
    // An absent row is zeros, and the maximum of equal elements does not depend on their number.
    %most = mlafix.reduce max %row : !tile
    %made = mlafix.make_state %row lse %most : !tile -> !state
    %m = mlafix.merge %s, %made : !state
    mlafix.store_state %m lse %lse[%t] : !state, !lses
  }
}
