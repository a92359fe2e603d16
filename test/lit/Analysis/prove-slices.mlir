// Slices that are stored cover a row together, or leave elements out; rows that share a row of a tensor.
// RUN: %mlafix-opt %s --canonicalize --mlafix-prove --split-input-file --verify-diagnostics -o /dev/null

!rows = memref<?x96xf32, strided<[?, 1], offset: ?>>
// expected-remark @below {{y: coverage: proved}}
// expected-remark @below {{y: one writer: proved}}
// expected-remark @below {{y: bounds: proved}}
mlafix.kernel @covered(%y: !rows {mlafix.dims = ["n", "96"], mlafix.access = "write"}, %v: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %a = mlafix.splat %v : f32 -> tensor<64xf32, #mlafix.dim<64>>
    mlafix.store %a, %y[%t] slice 0 to 64 : tensor<64xf32, #mlafix.dim<64>>, !rows
    mlafix.store %a, %y[%t] slice 32 to 96 : tensor<64xf32, #mlafix.dim<64>>, !rows
  }
}

// -----

!rows = memref<?x96xf32, strided<[?, 1], offset: ?>>
// expected-remark @below {{y: one writer: proved}}
// expected-remark @below {{y: bounds: proved}}
mlafix.kernel @gap(%y: !rows {mlafix.dims = ["n", "96"], mlafix.access = "write"}, %v: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %a = mlafix.splat %v : f32 -> tensor<32xf32, #mlafix.dim<32>>
    // expected-remark @below {{y: coverage: refuted: n = 1: y[0, 32]}}
    mlafix.store %a, %y[%t] slice 0 to 32 : tensor<32xf32, #mlafix.dim<32>>, !rows
    mlafix.store %a, %y[%t] slice 64 to 96 : tensor<32xf32, #mlafix.dim<32>>, !rows
  }
}

// -----

// What is read of an output was written before: not the element behind it.
!rows = memref<?x96xf32, strided<[?, 1], offset: ?>>
// expected-remark @below {{y: coverage: proved}}
// expected-remark @below {{y: one writer: proved}}
// expected-remark @below {{y: independence: proved}}
// expected-remark @below {{y: bounds: proved}}
mlafix.kernel @read_back(%y: !rows {mlafix.dims = ["n", "96"], mlafix.access = "write"}, %v: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %a = mlafix.splat %v : f32 -> tensor<48xf32, #mlafix.dim<48>>
    mlafix.store %a, %y[%t] slice 0 to 48 : tensor<48xf32, #mlafix.dim<48>>, !rows
    // expected-remark @below {{y: written before read: refuted: n = 1, i = 0: y[0, 48]}}
    %b = mlafix.load %y[%t] slice 1 to 49 : !rows -> tensor<48xf32, #mlafix.dim<48>>
    mlafix.store %b, %y[%t] slice 48 to 96 : tensor<48xf32, #mlafix.dim<48>>, !rows
  }
}
