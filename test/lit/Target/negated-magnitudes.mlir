// ptxas 12.9 and 13.0 replace a comparison of -|x| with a constant by a constant result. They also do so if a 64-bit
// minimum or maximum contains the comparison. The compiler therefore writes the negation as ~|x| + 1, which ptxas does
// not recognise.

// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx | FileCheck %s
// CHECK: .entry
// CHECK-NOT: neg.s64
// CHECK: abs.s64 %[[X:.*]], %{{.*}};
// CHECK: not.b64 rest, %[[X]];
// CHECK-NEXT: add.s64 %{{.*}}, rest, 1;
// CHECK-NOT: neg.s64

mlafix.kernel @negated_magnitude(
    %y: memref<?xi8, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"},
    %x: memref<?xi64, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i64
  %least = arith.constant -128 : i64
  %n = memref.dim %y, %c0 : memref<?xi8, strided<[?], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %value = mlafix.load %x[%t] : memref<?xi64, strided<[?], offset: ?>> -> i64
    %magnitude = math.absi %value : i64
    %negated = arith.subi %zero, %magnitude : i64
    %bounded = arith.maxsi %negated, %least : i64
    %byte = arith.trunci %bounded : i64 to i8
    mlafix.store %byte, %y[%t] : i8, memref<?xi8, strided<[?], offset: ?>>
  }
}
