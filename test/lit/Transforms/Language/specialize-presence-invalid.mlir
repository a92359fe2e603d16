// Errors for names that cannot be absent or present, and for names that still need a value.
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=8,E=8,lse=4})" 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=8,E=8,x=absent})" 2>&1 | FileCheck %s --check-prefix=REQUIRED
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=8,E=8,y=present})" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=8,w=absent})" 2>&1 | FileCheck %s --check-prefix=STILL
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=8})" 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=8,E=8,lse=absent})" 2>&1 | FileCheck %s --check-prefix=USE

// VALUE: specialize-presence-invalid.mlir:[[#@LINE+12]]:1: error: expected absent or present for optional argument 'lse', got '4'
// REQUIRED: error: expected an optional argument of kernel 'k' to bind to absent, got 'x', which is not optional
// UNKNOWN: error: expected an optional argument of kernel 'k' to bind to present, got 'y', which is no argument
// A row of an absent tensor is zeros. The length of this row still needs the size of dim E.
// STILL: error: expected a size for dim 'E' of kernel 'k', got no binding of it
// DIM: error: expected a size for dim 'E' of kernel 'k', got no binding of it
// USE: error: expected a load, a store or a memref.dim of argument 'lse', which is bound to absent, got 'memref.load'

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"E">>

mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"},
                 %lse: !lses {mlafix.dims = ["n"], mlafix.access = "update", mlafix.optional},
                 %w: !rows {mlafix.dims = ["n", "E"], mlafix.access = "read", mlafix.optional}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %row = mlafix.load %w[%t] : !rows -> !tile
    %sum = mlafix.reduce add %row : !tile
    mlafix.store %sum, %x[%t, %c0] : f32, !rows
    %direct = memref.load %lse[%t] : !lses
    mlafix.store %direct, %x[%t, %c0] : f32, !rows
  }
}
