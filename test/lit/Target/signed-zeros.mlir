// ptxas 13.0 compiles a select of -0.0 and -1.0 as a conversion of the integer 0 or -1, which gives +0.0 in place of
// -0.0. The values are therefore selected as bits.

// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx | FileCheck %s
// CHECK: .entry
// CHECK-NOT: selp.f32
// CHECK: selp.b32 %{{.*}}, -2147483648, -1082130432,
// CHECK-NOT: selp.f32

mlafix.kernel @choose(
    %y: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"},
    %negative: i1) {
  %c0 = arith.constant 0 : index
  %one = arith.constant -1.0 : f32
  %zero = arith.constant -0.0 : f32
  %n = memref.dim %y, %c0 : memref<?xf32, strided<[?], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %chosen = arith.select %negative, %one, %zero : f32
    mlafix.store %chosen, %y[%t] : f32, memref<?xf32, strided<[?], offset: ?>>
  }
}
