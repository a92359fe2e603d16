// PTX does not specify the sign of a negated NaN. LLVM negates the 32-bit word that contains a bf16 to take the sign of
// the bf16. Such a word is a NaN if its upper half is an infinite bf16 and its lower half is not 0. The sign of a
// negation is therefore computed on bits.

// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx | FileCheck %s
// CHECK: .entry
// CHECK-NOT: neg.
// CHECK-NOT: copysign.f32
// CHECK: and.b32 %{{.*}}, -2147483648;
// CHECK-NOT: neg.
// CHECK-NOT: copysign.f32

!rows = memref<?x64xbf16, strided<[?, 1], offset: ?>>
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
    %result = math.copysign %size, %negated : !tile
    mlafix.store %result, %y[%t] : !tile, !rows
  }
}
