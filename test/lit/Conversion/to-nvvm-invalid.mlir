// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-distribute),mlafix-to-nvvm)"
!col = memref<?xf32, strided<[1], offset: ?>>
mlafix.kernel @math(%x: !col {mlafix.dims = ["n"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !col -> f32
    // expected-error @below {{expected math.exp, exp2, log, log2, sqrt, rsqrt, sin, cos, erf, tanh, fma, absf, absi, floor, ceil, roundeven, trunc, copysign, ctlz or ctpop, got 'math.atan'}}
    %e = math.atan %v : f32
    mlafix.store %e, %x[%t] : f32, !col
  }
}
