// The name of a base may have the name of another base as its default, even if no state has that other base. A rebase
// between equal bases folds away.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=96})" | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=96,B=2})" | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=96,P=2})" | FileCheck %s --check-prefixes=CHECK,BOTH
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=96,B=2},canonicalize)" | FileCheck %s --check-prefix=FOLDED
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(canonicalize)" | FileCheck %s --check-prefix=GENERIC
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-states))" | FileCheck %s --check-prefix=LOWERED
// RUN: %mlafix-opt %s --emit=signature | FileCheck %s --check-prefix=SIGNATURE
// RUN: not sh -c "sed 's/B = .e., //' %s | %mlafix-opt --pass-pipeline='builtin.module(mlafix-specialize{bindings=D=96})'" 2>&1 | FileCheck %s --check-prefix=NODEFAULT
// RUN: sh -c "sed 's/B = .e., //' %s | %mlafix-opt --pass-pipeline='builtin.module(mlafix-specialize{bindings=D=96,B=2})'" | FileCheck %s --check-prefix=TWO
// NODEFAULT: error: expected a base for 'B' of kernel 'copy', got no binding of it
// SIGNATURE: "names":{"B":"e","D":null,"P":"Q","Q":"B","R":"B"}

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>

// CHECK-LABEL: mlafix.kernel @copy(
// ONE-SAME: bindings = {B = "e", D = 96 : i64, P = "e", Q = "e", R = "e"}
// TWO: bindings = {B = "2", D = 96 : i64, P = "2", Q = "2", R = "2"}
// BOTH-SAME: bindings = {B = "e", D = 96 : i64, P = "2", Q = "e", R = "e"}
// CHECK-SAME: defaults = {B = "e", P = "Q", Q = "B", R = "B"}
// FOLDED: defaults = {B = "e", P = "Q", Q = "B", R = "B"}
// GENERIC: defaults = {B = "e", P = "Q", Q = "B", R = "B"}
// LOWERED: bindings = {B = "e", P = "e", Q = "e", R = "e"}
mlafix.kernel @copy(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %out_lse: !lses {mlafix.dims = ["n"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %lse: !lses {mlafix.dims = ["n"], mlafix.access = "read"}) attributes {defaults = {B = "e", P = "Q", Q = "B", R = "B"}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // ONE: mlafix.load_state {{.*}} -> <96, e>
    // TWO: mlafix.load_state {{.*}} -> <96, 2>
    // BOTH: mlafix.load_state {{.*}} -> <96, 2>
    // GENERIC: mlafix.rebase
    // BOTH: mlafix.rebase {{.*}} : <96, 2> -> <96, e>
    // FOLDED-NOT: mlafix.rebase
    %s = mlafix.load_state %x[%t] lse %lse[%t] : !rows, !lses -> <"D", "P">
    %r = mlafix.rebase %s : <"D", "P"> -> <"D", "R">
    mlafix.store_state %r to %out[%t] lse %out_lse[%t] : <"D", "R">, !rows, !lses
  }
}
