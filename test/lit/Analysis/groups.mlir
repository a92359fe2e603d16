// Stores of rows of groups, and of rows with one element per group, cover their output in every small launch. The size
// of a product is the product of its factors' sizes. The result of lse_of counts as an lse, so arithmetic on it may
// cause a warning about NaN.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(canonicalize,mlafix-prove{exhaustive=3},mlafix-warn-nan))" --verify-diagnostics=only-expected -o /dev/null

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!row = tensor<?xf32, #mlafix.dim<"G" x "K">>
!each = tensor<?xf32, #mlafix.dim<"G">>

// expected-remark @below {{y: coverage: proved}}
// expected-remark @below {{y: one writer: proved}}
// expected-remark @below {{y: bounds: proved}}
// expected-remark @below {{s: coverage: proved}}
// expected-remark @below {{s: one writer: proved}}
// expected-remark @below {{s: bounds: proved}}
// expected-remark @below {{first: coverage: proved}}
// expected-remark @below {{first: one writer: proved}}
// expected-remark @below {{first: bounds: proved}}
// expected-remark @below {{x: independence: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @reduce(%y: !rows {mlafix.dims = ["n", "(G K)"], mlafix.access = "write"},
                      %s: !rows {mlafix.dims = ["n", "G"], mlafix.access = "write"},
                      %first: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"},
                      %x: !rows {mlafix.dims = ["n", "(G K)"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !row
    %m = mlafix.reduce max %v : !row -> !each
    mlafix.store %m, %s[%t] : !each, !rows
    %b = mlafix.broadcast %m : !each -> !row
    mlafix.store %b, %y[%t] : !row, !rows
    // The row has at least one element, since each factor of the product is at least 1, so index 0 is in bounds.
    %e = mlafix.load %x[%t, %c0] : !rows -> f32
    mlafix.store %e, %first[%t] : f32, memref<?xf32, strided<[1], offset: ?>>
  }
}

// expected-remark @below {{gap: coverage: proved}}
// expected-remark @below {{gap: one writer: proved}}
// expected-remark @below {{gap: bounds: proved}}
// expected-remark @below {{z: coverage: proved}}
// expected-remark @below {{z: one writer: proved}}
// expected-remark @below {{z: bounds: proved}}
// expected-remark @below {{x: independence: proved}}
// expected-remark @below {{x: bounds: proved}}
// expected-remark @below {{lse: independence: proved}}
// expected-remark @below {{lse: bounds: proved}}
mlafix.kernel @lse_of(%gap: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"},
                      %z: !rows {mlafix.dims = ["n", "(G K)"], mlafix.access = "write"},
                      %x: !rows {mlafix.dims = ["n", "(G K)"], mlafix.access = "read"},
                      %lse: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !row
    %l = mlafix.load %lse[%t] : memref<?xf32, strided<[1], offset: ?>> -> f32
    %state = mlafix.make_state %v lse %l : !row -> !mlafix.state<"G" x "K", e>
    %of = mlafix.lse_of %state : !mlafix.state<"G" x "K", e>
    // expected-warning @below {{got -inf - -inf for lse = -inf (an empty row)}}
    %d = arith.subf %of, %l : f32
    mlafix.store %d, %gap[%t] : f32, memref<?xf32, strided<[1], offset: ?>>
    // The payload of an empty state is 0, so the multiplication causes no warning.
    %p = mlafix.payload %state : !mlafix.state<"G" x "K", e>
    %zero = arith.constant 0.0 : f32
    %zeros = mlafix.splat %zero : f32 -> !row
    %q = arith.mulf %p, %zeros : !row
    mlafix.store %q, %z[%t] : !row, !rows
  }
}
