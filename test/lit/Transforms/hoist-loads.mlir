// A load stays behind a store, which may write what it reads, and takes along the arithmetic that it needs.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-hoist-loads))" | FileCheck %s
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "update"},
                 %i: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[1], offset: ?>>
  // CHECK: mlafix.forall (%[[T:.*]]) in
  mlafix.forall (%t) in (%n) {
    // CHECK-NEXT: %[[A:.*]] = memref.load %x[%[[T]]]
    // CHECK-NEXT: %[[C:.*]] = memref.load %x[%c0]
    // CHECK-NEXT: %[[J:.*]] = memref.load %i[%[[T]]]
    // CHECK-NEXT: %[[K:.*]] = arith.index_cast %[[J]]
    // CHECK-NEXT: %[[D:.*]] = memref.load %x[%[[K]]]
    // CHECK-NEXT: %[[B:.*]] = arith.addf %[[A]], %[[A]]
    %a = memref.load %x[%t] : memref<?xf32, strided<[1], offset: ?>>
    %b = arith.addf %a, %a : f32
    %c = memref.load %x[%c0] : memref<?xf32, strided<[1], offset: ?>>
    %j = memref.load %i[%t] : memref<?xi32, strided<[1], offset: ?>>
    %k = arith.index_cast %j : i32 to index
    %d = memref.load %x[%k] : memref<?xf32, strided<[1], offset: ?>>
    %e = arith.addf %c, %d : f32
    %f = arith.addf %b, %e : f32
    // CHECK: memref.store
    memref.store %f, %x[%t] : memref<?xf32, strided<[1], offset: ?>>
    // CHECK-NEXT: memref.load %x[%c1]
    %g = memref.load %x[%c1] : memref<?xf32, strided<[1], offset: ?>>
    memref.store %g, %x[%c0] : memref<?xf32, strided<[1], offset: ?>>
  }
}
