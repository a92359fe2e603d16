// A copysign that takes the sign of a negation is computed on bits (see signs.mlir). The same holds if the operand of
// the negation is another such copysign.

// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx | FileCheck %s
// CHECK: .entry
// CHECK-NOT: copysign.f32
// CHECK-COUNT-4: and.b32 %{{.*}}, -2147483648;

!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>

mlafix.kernel @take(
    %y: !rows {mlafix.dims = ["n", "D=64"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "D=64"], mlafix.access = "read"},
    %sign: !rows {mlafix.dims = ["n", "D=64"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %size = mlafix.load %x[%t] : !rows -> !tile
    %s = mlafix.load %sign[%t] : !rows -> !tile
    %negated = arith.negf %s : !tile
    %first = math.copysign %size, %negated : !tile
    %again = arith.negf %first : !tile
    %sum = arith.addf %size, %first : !tile
    %result = math.copysign %sum, %again : !tile
    mlafix.store %result, %y[%t] : !tile, !rows
  }
}
