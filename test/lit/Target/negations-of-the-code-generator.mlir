// LLVM's code generator turns a product or a quotient by -8 into a negation. In a maximum of three integers, ptxas 13.0
// dropped such a negation (random kernel 150212). The compiler therefore also writes this negation as ~x + 1 (see
// negations.mlir).

// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx | FileCheck %s
// CHECK: .entry
// CHECK-NOT: neg.s32
// CHECK: not.b32 [[X:%r[0-9]+]], %r{{[0-9]+}};
// CHECK-NEXT: add.s32 [[X]], [[X]], 1;
// CHECK-NOT: neg.s32

mlafix.kernel @largest_of_three(
    %y: memref<?xi32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"},
    %a: memref<?xi32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"},
    %b: memref<?xi32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %factor = arith.constant -8 : i32
  %n = memref.dim %y, %c0 : memref<?xi32, strided<[?], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %one = mlafix.load %a[%t] : memref<?xi32, strided<[?], offset: ?>> -> i32
    %two = mlafix.load %b[%t] : memref<?xi32, strided<[?], offset: ?>> -> i32
    %both = arith.andi %one, %two : i32
    %product = arith.muli %one, %factor : i32
    %square = arith.muli %two, %two : i32
    %some = arith.maxsi %both, %product : i32
    %most = arith.maxsi %some, %square : i32
    mlafix.store %most, %y[%t] : i32, memref<?xi32, strided<[?], offset: ?>>
  }
}
