// ptxas 13.0 combines maxima of three integers into one and drops a negation: it gave -4 when 4 was the largest. The
// compiler writes a negation as ~x + 1, which ptxas does not recognise.

// RUN: %mlafix-opt %s --specialize=D=128 --target=sm_90 --emit=ptx | FileCheck %s
// CHECK: .entry
// CHECK-NOT: neg.s32
// CHECK: not.b32 rest, %[[X:.*]];
// CHECK-NEXT: add.s32 %{{.*}}, rest, 1;
// CHECK: max.s32
// CHECK-NOT: neg.s32

mlafix.kernel @largest_negated(
    %y: memref<?xi32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"},
    %x: memref<?x?xi32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %n = memref.dim %y, %c0 : memref<?xi32, strided<[?], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %row = mlafix.load %x[%t] : memref<?x?xi32, strided<[?, 1], offset: ?>> -> tensor<?xi32, #mlafix.dim<"D">>
    %zeros = mlafix.splat %zero : i32 -> tensor<?xi32, #mlafix.dim<"D">>
    %negated = arith.subi %zeros, %row : tensor<?xi32, #mlafix.dim<"D">>
    %most = mlafix.reduce max %negated : tensor<?xi32, #mlafix.dim<"D">> -> i32
    mlafix.store %most, %y[%t] : i32, memref<?xi32, strided<[?], offset: ?>>
  }
}
