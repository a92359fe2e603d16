// ptxas 12.9 and 13.0 may lose one of two pairs of fp8. They do so if the pairs are stored as one word and used again
// after a branch that may reload the pairs. Branches therefore yield the word and not the pairs. An empty line of
// inline assembly keeps LLVM from replacing a loaded pair by a stored one.

// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx --variant=dense | FileCheck %s
// CHECK: cvt.rn.satfinite.e4m3x2.f32 %[[P0:rs[0-9]+]],
// CHECK: cvt.rn.satfinite.e4m3x2.f32 %[[P1:rs[0-9]+]],
// CHECK: st.global
// CHECK: begin inline asm
// CHECK: end inline asm
// CHECK: ld.global{{.*}}.b16
// CHECK-NOT: cvt.rn.f16x2.e4m3x2 %{{.*}}, %[[P0]];
// CHECK-NOT: cvt.rn.f16x2.e4m3x2 %{{.*}}, %[[P1]];

!rows = memref<?x20xf8E4M3FN, strided<[?, 1], offset: ?>>
!wide = memref<?x20xf16, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<20xf32, #mlafix.dim<20>>

mlafix.kernel @again(
    %y: !rows {mlafix.dims = ["n", "D=20"], mlafix.access = "update"},
    %lse: !lses {mlafix.dims = ["n"], mlafix.access = "write"},
    %x: !wide {mlafix.dims = ["n", "D=20"], mlafix.access = "read"},
    %v: !wide {mlafix.dims = ["n", "D=20"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  %one = arith.constant 1.0 : f32
  mlafix.forall (%t) in (%n) {
    %row = mlafix.load %x[%t] : !wide -> !tile
    mlafix.store %row, %y[%t] : !tile, !rows
    mlafix.store %one, %lse[%t] : f32, !lses
    %stored = mlafix.load %y[%t] : !rows -> !tile
    %factor = mlafix.load %v[%t] : !wide -> !tile
    %product = arith.mulf %stored, %factor : !tile
    mlafix.store %product, %y[%t] : !tile, !rows
  }
}
