// Tests the errors for unknown names, missing bindings and wrong values. The error for an unknown name lists the names
// that can be bound.
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=8,T=f16,Q=3})" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=T=f16})" 2>&1 | FileCheck %s --check-prefix=NODIM
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=8})" 2>&1 | FileCheck %s --check-prefix=NODTYPE
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=f16,T=f16})" 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=0,T=f16})" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=8,T=float})" 2>&1 | FileCheck %s --check-prefix=DTYPE
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=8,T=i32})" 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D})" 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=n=0,D=8,T=f16})" 2>&1 | FileCheck %s --check-prefix=LOWER

// UNKNOWN: error: expected a name of kernel 'k' to bind ('D', 'T', 'n'), got 'Q'
// NODIM: error: expected a size for dim 'D' of kernel 'k', got no binding of it
// NODTYPE: error: expected a dtype for 'T' of kernel 'k', got no binding of it
// SIZE: error: expected a positive integer for dim 'D', got 'f16'
// ZERO: error: expected a positive integer for dim 'D', got '0'
// DTYPE: error: expected one of bf16, f16, f32, f8e4m3fn, i32, i64, i8, u8, bool, f8e5m2, f8e8m0, f4e2m1 for dtype 'T', got 'float'
// KIND: error: expected a dtype of floats for 'T', since the body computes with its elements, got i32; in Python, DType("T", default=i32) stands for integers
// KIND: note: here
// FORM: error: expected a binding NAME=VALUE, got 'D'
// LOWER: error: expected a positive integer for dim 'n', got '0'

mlafix.kernel @k(%x: memref<?x?xbf16, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xbf16, strided<[?, 1], offset: ?>>
  %one = arith.constant 1.0 : f32
  mlafix.forall (%t) in (%n) {
    mlafix.store %one, %x[%t, %t] : f32, memref<?x?xbf16, strided<[?, 1], offset: ?>>
  }
}
