// A row's program is inlined into the thread's program.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-inline-rows))" | FileCheck %s

// CHECK-LABEL: mlafix.kernel @store
mlafix.kernel @store(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"}, %mask: i32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[1], offset: ?>>
  // CHECK: mlafix.forall (%[[T:.*]]) in
  mlafix.forall (%t) in (%n) {
    // CHECK-NEXT: %[[ZERO:.*]] = arith.constant
    // CHECK-NEXT: memref.store %[[ZERO]], %x[%[[T]]]
    // CHECK-NEXT: }
    mlafix_thread.row lane %c0 mask %mask {
      %zero = arith.constant 0.0 : f32
      memref.store %zero, %x[%t] : memref<?xf32, strided<[1], offset: ?>>
    }
  }
}
