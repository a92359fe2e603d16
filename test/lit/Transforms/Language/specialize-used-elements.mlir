// If the body computes with elements of an integer variable, the variable can only be bound to integers.
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=I=f32})" 2>&1 | FileCheck %s

!rows = memref<?x16xi32, strided<[?, 1], offset: ?>>
!tile = tensor<16xi64, #mlafix.dim<16>>
// CHECK: [[#@LINE+1]]:1: error: expected i32, i64, i8 or u8 for 'I', since the body computes with its elements, got f32
mlafix.kernel @count(%out: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "I", mlafix.access = "write"},
                     %x: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "I", mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    // CHECK: [[#@LINE+1]]:{{.*}} note: here
    %w = arith.addi %v, %v : !tile
    mlafix.store %w, %out[%t] : !tile, !rows
  }
}
