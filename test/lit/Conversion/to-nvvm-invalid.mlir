// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(mlafix-plan-layout{target=sm_90},mlafix.kernel(mlafix-distribute),mlafix-to-nvvm)"
!col = memref<?xf32, strided<[1], offset: ?>>
mlafix.kernel @math(%x: !col {mlafix.dims = ["n"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !col -> f32
    // expected-error @below {{expected math.exp, exp2, log, log2, sqrt, rsqrt, fma, absf, absi, floor, ceil, copysign, ctlz or ctpop, got 'math.erf'}}
    %e = math.erf %v : f32
    mlafix.store %e, %x[%t] : f32, !col
  }
}

// -----

!fp8 = memref<?xf8E4M3FN, strided<[1], offset: ?>>
mlafix.kernel @fp8(%x: !fp8 {mlafix.dims = ["n"], mlafix.access = "read"}, %y: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !fp8
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{expected elements of bf16, f16 or f32 to load, got f8e4m3fn, which can only be stored}}
    %v = mlafix.load %x[%t] : !fp8 -> f32
    mlafix.store %v, %y[%t] : f32, memref<?xf32, strided<[1], offset: ?>>
  }
}

