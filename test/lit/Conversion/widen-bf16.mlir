// LLVM narrows arithmetic between a widening and a narrowing to the narrow type, if that has as many digits: f16 for bf16, whose range it does
// not have. Where f16 is stored, bf16 is widened by a shift, which LLVM does not take for a widening.
// RUN: %mlafix-opt %s --kernel=mixed --target=sm_90 --emit=ptx | FileCheck %s --check-prefix=MIXED --implicit-check-not=cvt.f32.bf16 --implicit-check-not=cvt.f32.f16
// RUN: %mlafix-opt %s --kernel=alike --target=sm_90 --emit=ptx | FileCheck %s --check-prefix=ALIKE

!bf16s = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!f16s = memref<?x64xf16, strided<[?, 1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>

// MIXED-LABEL: .entry mixed_dense(
// MIXED: ld.global{{.*}}.b32
// MIXED: div.rn.f32
// MIXED: cvt.rn.f16x2.f32
mlafix.kernel @mixed(%y: !f16s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !f16s
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf16s -> !tile
    %two = arith.constant 2.0 : f32
    %twos = mlafix.splat %two : f32 -> !tile
    %q = arith.divf %twos, %v : !tile
    mlafix.store %q, %y[%t] : !tile, !f16s
  }
}

// Elsewhere the instruction does it.
// ALIKE-LABEL: .entry alike_dense(
// ALIKE: cvt.f32.bf16
// ALIKE: cvt.rn.bf16x2.f32
mlafix.kernel @alike(%y: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !bf16s
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf16s -> !tile
    %two = arith.constant 2.0 : f32
    %twos = mlafix.splat %two : f32 -> !tile
    %q = arith.divf %twos, %v : !tile
    mlafix.store %q, %y[%t] : !tile, !bf16s
  }
}

// The pass alone.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-layout{target=sm_90},mlafix.kernel(mlafix-distribute,mlafix-widen-bf16))" | FileCheck %s --check-prefix=ALONE
// ALONE-LABEL: mlafix.kernel @mixed
// ALONE-NOT: arith.extf {{.*}}bf16
// ALONE: arith.truncf {{.*}} to {{.*}}f16
// ALONE-LABEL: mlafix.kernel @alike
// ALONE: arith.extf {{.*}}bf16
