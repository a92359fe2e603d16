// All uses of a name may fold away: without `out` and `lse`, B has none. B is bound all the same, to the given value or
// to its default, and the default is kept.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=96,T=f16,out=absent,lse=absent})" | FileCheck %s --check-prefix=ABSENT
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=96,T=f16,B=2,out=absent,lse=absent})" | FileCheck %s --check-prefix=GIVEN
// RUN: %mlafix-opt %s --specialize=D=96,T=f16,out=absent,lse=absent --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: %mlafix-opt %s --specialize=D=96,T=f16,out=absent,lse=absent --target=x86-64-v3 --emit=llvm -o /dev/null
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(canonicalize)" -o %t.mlir
// RUN: FileCheck %s --check-prefix=GENERIC --input-file=%t.mlir
// RUN: %mlafix-opt %t.mlir --specialize=D=96,T=f16 --target=sm_90 --emit=ptx -o /dev/null

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>
!state = !mlafix.state<"D", "B">

// All states are removed with the arguments to which they are stored.
// ABSENT-LABEL: mlafix.kernel @optional(
// ABSENT-SAME: bindings = {B = "e", D = 96 : i64, T = "f16", lse = "absent", out = "absent"}
// ABSENT-SAME: defaults = {B = "e"}
// ABSENT-NOT: mlafix.state
// GIVEN-LABEL: mlafix.kernel @optional(
// GIVEN-SAME: bindings = {B = "2", D = 96 : i64,
// PTX: .entry optional_
// GENERIC-LABEL: mlafix.kernel @optional(
// GENERIC-SAME: defaults = {B = "e"}
mlafix.kernel @optional(
    %flags: memref<?xi1, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"},
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "write", mlafix.optional},
    %lse: !lses {mlafix.dims = ["n"], mlafix.access = "write", mlafix.optional},
    %v: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %v_lse: !lses {mlafix.dims = ["n"], mlafix.access = "read"}) attributes {defaults = {B = "e"}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %flags, %c0 : memref<?xi1, strided<[?], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %true = arith.constant true
    mlafix.store %true, %flags[%t] : i1, memref<?xi1, strided<[?], offset: ?>>
    %s = mlafix.load_state %v[%t] lse %v_lse[%t] : !rows, !lses -> !state
    mlafix.store_state %s to %out[%t] lse %lse[%t] : !state, !rows, !lses
  }
}
