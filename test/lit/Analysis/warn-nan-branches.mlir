// Two branches load an lse that the kernel also writes. The analysis must not treat one load as the other. The kernel
// has a file of its own, since the analysis once crashed when this kernel was the first op of a module.
// RUN: %mlafix-opt %s --canonicalize --mlafix-warn-nan --verify-diagnostics -o /dev/null

!vec = memref<?xf32, strided<[?], offset: ?>>

mlafix.kernel @branches(%lse: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %flag: i1) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %lse, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    scf.if %flag {
      %a = mlafix.load %lse[%t] : !vec -> f32
      %low = arith.minimumf %a, %zero : f32
      mlafix.store %low, %lse[%t] : f32, !vec
    } else {
      %b = mlafix.load %lse[%t] : !vec -> f32
      %high = arith.maximumf %b, %zero : f32
      mlafix.store %high, %lse[%t] : f32, !vec
    }
  }
}
