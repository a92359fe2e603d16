// An op that cannot be distributed is an error, reported at the op.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_80},mlafix.kernel(mlafix-distribute))"

!rows = memref<?x4xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @constant(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{expected a constant row whose elements are all one value, got different elements}}
    %v = arith.constant dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32, #mlafix.dim<4>>
    mlafix.store %v, %x[%t] : tensor<4xf32, #mlafix.dim<4>>, !rows
  }
}

// -----

!rows = memref<?x4xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @element(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> tensor<4xf32, #mlafix.dim<4>>
    // expected-error @below {{expected an elementwise op with one result, a load, a store, a reduction, a scan, a swap, a broadcast, a splat, an iota or control flow on a row, got 'tensor.extract'}}
    %e = tensor.extract %v[%c0] : tensor<4xf32, #mlafix.dim<4>>
    %s = mlafix.splat %e : f32 -> tensor<4xf32, #mlafix.dim<4>>
    mlafix.store %s, %x[%t] : tensor<4xf32, #mlafix.dim<4>>, !rows
  }
}

// -----

!rows = memref<?x4xi32, strided<[?, 1], offset: ?>>
mlafix.kernel @two_results(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> tensor<4xi32, #mlafix.dim<4>>
    // expected-error @below {{expected an elementwise op with one result, a load, a store, a reduction, a scan, a swap, a broadcast, a splat, an iota or control flow on a row, got 'arith.mulsi_extended'}}
    %l, %h = arith.mulsi_extended %v, %v : tensor<4xi32, #mlafix.dim<4>>
    mlafix.store %h, %x[%t] : tensor<4xi32, #mlafix.dim<4>>, !rows
  }
}

// -----

!rows = memref<?x4xi32, strided<[?, 1], offset: ?>>
mlafix.kernel @index(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> tensor<4xi32, #mlafix.dim<4>>
    // expected-error @below {{expected rows of f32, i1, i8, i32 or i64, got a row of index}}
    %i = arith.index_cast %v : tensor<4xi32, #mlafix.dim<4>> to tensor<4xindex, #mlafix.dim<4>>
    mlafix.store %v, %x[%t] : tensor<4xi32, #mlafix.dim<4>>, !rows
  }
}

// -----

!rows = memref<?x4xf32, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>
mlafix.kernel @state(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %l: !lses {mlafix.dims = ["n"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{expected rows and scalars, got a state, which mlafix-lower-states has not seen}}
    %none = mlafix.identity : !mlafix.state<4, e>
    mlafix.store_state %none to %x[%t] lse %l[%t] : !mlafix.state<4, e>, !rows, !lses
  }
}
