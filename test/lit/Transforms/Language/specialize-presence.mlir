// An optional argument may be bound as absent or present. If absent, it disappears from the body. If present, checks
// for its presence disappear.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=96,T=f16,w=absent,w_lse=absent,lse=absent,scale=absent})" | FileCheck %s --check-prefix=ABSENT --implicit-check-not=mlafix.present
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=96,T=f16,E=64,I=i8,w=present,w_lse=present,lse=present,scale=present})" | FileCheck %s --check-prefix=PRESENT --implicit-check-not=mlafix.present --implicit-check-not=mlafix.optional
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=96,T=f16,E=64,I=i8})" | FileCheck %s --check-prefix=OPEN
// Other passes accept the specialised kernel. An argument that is bound cannot be bound again.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=96,T=f16,w=absent,w_lse=absent,lse=absent,scale=absent})" -o %t.mlir
// RUN: %mlafix-opt %t.mlir --pass-pipeline="builtin.module(canonicalize)" | FileCheck %s --check-prefix=AGAIN
// RUN: not %mlafix-opt %t.mlir --pass-pipeline="builtin.module(mlafix-specialize{bindings=w=present})" 2>&1 | FileCheck %s --check-prefix=TWICE

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>
!wide = memref<?x?xi32, strided<[?, 1], offset: ?>>
!state = !mlafix.state<"D", e>
!tile = tensor<?xi32, #mlafix.dim<"E">>

// Only scale has the names E and I. If it is absent, they need no value.
// ABSENT-LABEL: mlafix.kernel @k(
// ABSENT-SAME: %lse: {{[^{]*}} {mlafix.access = "absent",
// ABSENT-SAME: %w: memref<?x96xf16, {{[^{]*}} {mlafix.access = "absent", mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.optional}
// ABSENT-SAME: %w_lse: {{[^{]*}} {mlafix.access = "absent",
// ABSENT-SAME: %scale: memref<?x?xi32, {{[^{]*}} {mlafix.access = "absent",
// ABSENT-SAME: bindings = {D = 96 : i64, T = "f16", lse = "absent", scale = "absent", w = "absent", w_lse = "absent"}
// PRESENT-LABEL: mlafix.kernel @k(
// PRESENT-SAME: %lse: {{[^{]*}} {mlafix.access = "write", mlafix.dims = ["n"]}
// PRESENT-SAME: %scale: memref<?x64xi8, {{[^{]*}} {mlafix.access = "read",
// PRESENT-SAME: bindings = {D = 96 : i64, E = 64 : i64, I = "i8", T = "f16", lse = "present", scale = "present", w = "present", w_lse = "present"}
// OPEN-LABEL: mlafix.kernel @k(
// OPEN-SAME: mlafix.optional
// OPEN-SAME: bindings = {D = 96 : i64, E = 64 : i64, I = "i8", T = "f16"}
mlafix.kernel @k(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %lse: !lses {mlafix.dims = ["n"], mlafix.access = "write", mlafix.optional},
    %v: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %v_lse: !lses {mlafix.dims = ["n"], mlafix.access = "read"},
    %w: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "read", mlafix.optional},
    %w_lse: !lses {mlafix.dims = ["n"], mlafix.access = "read", mlafix.optional},
    %scale: !wide {mlafix.dims = ["m", "E"], mlafix.dtype = "I", mlafix.access = "read", mlafix.optional}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // A loaded state is the identity if its payload or its lse is absent.
    // ABSENT: %[[V:.*]] = mlafix.load_state %v
    // ABSENT-NEXT: %[[W:.*]] = mlafix.identity : <96, e>
    // PRESENT: mlafix.load_state %v
    // PRESENT-NEXT: mlafix.load_state %w[%{{.*}}] lse %w_lse
    %a = mlafix.load_state %v[%t] lse %v_lse[%t] : !rows, !lses -> !state
    %b = mlafix.load_state %w[%t] lse %w_lse[%t] : !rows, !lses -> !state
    %m = mlafix.merge %a, %b : !state

    // The size of an absent tensor's dim is 0, as in a launch that omits the tensor. A load from it gives 0, or the
    // `else` value if the load's predicate is false. Stores to it disappear.
    // ABSENT: %[[DIM:.*]] = arith.constant 0 : index
    // ABSENT: %[[SIZE:.*]] = arith.index_cast %[[DIM]]
    // ABSENT: %[[SEVEN:.*]] = arith.constant 7
    // PRESENT: memref.dim %scale
    // OPEN: mlafix.present %scale
    %has = mlafix.present %scale : !wide
    %dim = memref.dim %scale, %c0 : !wide
    %size = arith.index_cast %dim : index to i32
    %seven = arith.constant 7 : i32
    // ABSENT: %[[ZERO:.*]] = arith.constant 0 : i32
    // ABSENT: %[[ELEMENT:.*]] = arith.select %false, %[[ZERO]], %[[SEVEN]] : i32
    // ABSENT: arith.addi %[[SIZE]], %[[ELEMENT]] : i32
    %element = mlafix.load %scale[%t, %c0] if %has else %seven : !wide -> i32
    %either = arith.addi %size, %element : i32
    %f = arith.sitofp %either : i32 to f32
    // ABSENT: mlafix.store %{{.*}}, %out
    // ABSENT-NEXT: mlafix.store_state %{{.*}} to %out[%{{[^]]*}}] :
    // ABSENT-NEXT: }
    // PRESENT: mlafix.store %{{.*}}, %lse
    // PRESENT: mlafix.store_state %{{.*}} to %out[%{{.*}}] lse %lse
    mlafix.store %f, %lse[%t] : f32, !lses
    mlafix.store %f, %out[%t, %c0] : f32, !rows
    mlafix.store_state %m to %out[%t] lse %lse[%t] : !state, !rows, !lses

    // Unused rows along an unbound dim disappear.
    // ABSENT-NOT: "E"
    %row = mlafix.load %scale[%t] : !wide -> !tile
  }
}

// AGAIN: mlafix.load_state %v
// AGAIN-NOT: identity
// AGAIN-NOT: mlafix.merge
// AGAIN: mlafix.store_state
// TWICE: error: expected an optional argument of kernel 'k' to bind to present, got 'w', which is bound to absent already
