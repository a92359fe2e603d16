// Ops that a kernel must not contain are refused before the first pass.

// RUN: not %mlafix-opt %s --target=x86-64 --specialize=T=bf16 2>&1 | FileCheck %s

mlafix.kernel @k(%x: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[?], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // CHECK: source-check.mlir:[[@LINE+1]]:10: error: expected operations of mlafix, arith, math, scf or memref.dim in a kernel, got 'memref.load'
    %v = memref.load %x[%t] : memref<?xf32, strided<[?], offset: ?>>
    // CHECK: source-check.mlir:[[@LINE+1]]:10: error: expected an operation that every target has, got 'arith.remf', which CPUs lack
    %r = arith.remf %v, %v : f32
    // CHECK: source-check.mlir:[[@LINE+1]]:5: error: expected operations of mlafix, arith, math, scf or memref.dim in a kernel, got 'mlafix_thread.row'
    mlafix_thread.row {}
    mlafix.store %r, %x[%t] : f32, memref<?xf32, strided<[?], offset: ?>>
  }
}
