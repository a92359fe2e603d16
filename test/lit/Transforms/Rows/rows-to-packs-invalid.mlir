// The pass refuses rows whose grid has not yet become threads or loops.
// RUN: %mlafix-opt %s --verify-diagnostics --pass-pipeline="builtin.module(mlafix.kernel(mlafix-rows-to-packs))"

!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
module attributes {mlafix.target = "x86-64-v3"} {
  // expected-error @below {{expected a kernel without a grid, got one whose grid is still to become threads or loops}}
  mlafix.kernel @early(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 8, pack = 16, rows = 1>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : !rows -> !tile
      mlafix.store %v, %x[%t] : !tile, !rows
    }
  }
}
