// Conversions between integers and floats of less than 32 bits go through f32. Conversions of f32 and bitcasts stay
// unchanged.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-split-conversions))" | FileCheck %s

// CHECK-LABEL: mlafix.kernel @through_f32
mlafix.kernel @through_f32(%y: memref<?xbf16, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"},
                           %h: memref<?xf16, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "update"}, %i: i32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xbf16, strided<[1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // CHECK: %[[WIDE:.*]] = arith.sitofp %i : i32 to f32
    // CHECK-NEXT: arith.truncf %[[WIDE]] : f32 to bf16
    %a = arith.sitofp %i : i32 to bf16
    memref.store %a, %y[%t] : memref<?xbf16, strided<[1], offset: ?>>
    %x = memref.load %h[%t] : memref<?xf16, strided<[1], offset: ?>>
    // CHECK: %[[FLOAT:.*]] = arith.extf %{{.*}} : f16 to f32
    // CHECK-NEXT: arith.fptosi %[[FLOAT]] : f32 to i32
    %b = arith.fptosi %x : f16 to i32
    // CHECK: arith.sitofp %{{.*}} : i32 to f32
    // CHECK-NEXT: arith.truncf %{{.*}} : f32 to f16
    // CHECK-NEXT: memref.store
    %f = arith.sitofp %b : i32 to f32
    %c = arith.truncf %f : f32 to f16
    memref.store %c, %h[%t] : memref<?xf16, strided<[1], offset: ?>>
    // CHECK: arith.bitcast %{{.*}} : f16 to i16
    %bits = arith.bitcast %x : f16 to i16
  }
}
