// If the lanes of a row exchange values or wait for each other, their number must be a power of two. Otherwise, any
// number of lanes is allowed.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(mlafix.kernel(mlafix-distribute))"

!rows = memref<?x96xf32, strided<[96, 1], offset: ?>>
!col = memref<?xf32, strided<[1], offset: ?>>
module attributes {mlafix.target = "sm_90"} {
  // expected-error @below {{expected a power of two of lanes in a layout whose lanes synchronise, got 12}}
  mlafix.kernel @reduces(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %sum: !col {mlafix.dims = ["n"], mlafix.access = "write"}) attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 12, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : !rows -> tensor<96xf32, #mlafix.dim<96>>
      %r = mlafix.reduce add %v : tensor<96xf32, #mlafix.dim<96>>
      mlafix.store %r, %sum[%t] : f32, !col
    }
  }
}

// -----

!rows = memref<?x96xf32, strided<[96, 1], offset: ?>>
!col = memref<?xf32, strided<[1], offset: ?>>
module attributes {mlafix.target = "sm_90"} {
  // The lanes wait for each other, since one lane stores an element that the other lanes load.
  // expected-error @below {{expected a power of two of lanes in a layout whose lanes synchronise, got 12}}
  mlafix.kernel @waits(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %scale: !col {mlafix.dims = ["n"], mlafix.access = "update"}) attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 12, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %s = mlafix.load %scale[%t] : !col -> f32
      %v = mlafix.splat %s : f32 -> tensor<96xf32, #mlafix.dim<96>>
      mlafix.store %v, %x[%t] : tensor<96xf32, #mlafix.dim<96>>, !rows
      %twice = arith.addf %s, %s : f32
      mlafix.store %twice, %scale[%t] : f32, !col
    }
  }
}
