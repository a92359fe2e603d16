// Parts of a row along a product do not overlap, and together they are the row.
// RUN: %mlafix-opt %s --mlafix-prove --split-input-file --verify-diagnostics -o /dev/null
// RUN: %mlafix-opt %s --split-input-file --pass-pipeline="builtin.module(mlafix.kernel(canonicalize,mlafix-prove{exhaustive=3}))" --verify-diagnostics=only-expected -o /dev/null

// Both halves are stored.
!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>

// expected-remark @below {{x: coverage: proved}}
// expected-remark @below {{x: one writer: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @halves(%x: !rows {mlafix.dims = ["n", "(2 K)"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %z = mlafix.splat %zero : f32 -> tensor<?xf32, #mlafix.dim<"K">>
    mlafix.store %z, %x[%t] group %c0 : tensor<?xf32, #mlafix.dim<"K">>, !rows
    mlafix.store %z, %x[%t] group %c1 : tensor<?xf32, #mlafix.dim<"K">>, !rows
  }
}

// One half is left out.
// expected-remark @below {{x: one writer: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @half(%x: !rows {mlafix.dims = ["n", "(2 K)"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %z = mlafix.splat %zero : f32 -> tensor<?xf32, #mlafix.dim<"K">>
    // expected-remark @below {{x: coverage: refuted: n = 1, K = 1: x[0, 1]}}
    mlafix.store %z, %x[%t] group %c0 : tensor<?xf32, #mlafix.dim<"K">>, !rows
  }
}

// -----

// A half of a long row is left out. The search for a counterexample tries only a few elements.
!rows = memref<?x2000000000xf32, strided<[?, 1], offset: ?>>

// expected-remark @below {{x: one writer: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @long_half(%x: !rows {mlafix.dims = ["n", "(2 1000000000)"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %z = mlafix.splat %zero : f32 -> tensor<1000000000xf32, #mlafix.dim<1000000000>>
    // expected-remark @below {{x: coverage: refuted: n = 1: x[0, 1000000000]}}
    mlafix.store %z, %x[%t] group %c0 : tensor<1000000000xf32, #mlafix.dim<1000000000>>, !rows
  }
}

// -----

// Both members of each pair are stored.
!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>

// expected-remark @below {{x: coverage: proved}}
// expected-remark @below {{x: one writer: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @pairs(%x: !rows {mlafix.dims = ["n", "(K 2)"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %z = mlafix.splat %zero : f32 -> tensor<?xf32, #mlafix.dim<"K">>
    mlafix.store %z, %x[%t] member %c0 : tensor<?xf32, #mlafix.dim<"K">>, !rows
    mlafix.store %z, %x[%t] member %c1 : tensor<?xf32, #mlafix.dim<"K">>, !rows
  }
}

// One member is left out.
// expected-remark @below {{x: one writer: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @even(%x: !rows {mlafix.dims = ["n", "(K 2)"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %z = mlafix.splat %zero : f32 -> tensor<?xf32, #mlafix.dim<"K">>
    // expected-remark @below {{x: coverage: refuted: n = 1, K = 1: x[0, 1]}}
    mlafix.store %z, %x[%t] member %c0 : tensor<?xf32, #mlafix.dim<"K">>, !rows
  }
}

// A loop stores all groups.
// expected-remark @below {{x: coverage: proved}}
// expected-remark @below {{x: one writer: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @loop(%x: !rows {mlafix.dims = ["n", "(3 K)"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %z = mlafix.splat %zero : f32 -> tensor<?xf32, #mlafix.dim<"K">>
    scf.for %g = %c0 to %c3 step %c1 {
      mlafix.store %z, %x[%t] group %g : tensor<?xf32, #mlafix.dim<"K">>, !rows
    }
  }
}

// The loop ends before the last group.
// expected-remark @below {{x: one writer: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @short(%x: !rows {mlafix.dims = ["n", "(3 K)"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %z = mlafix.splat %zero : f32 -> tensor<?xf32, #mlafix.dim<"K">>
    scf.for %g = %c0 to %c2 step %c1 {
      // expected-remark @below {{x: coverage: refuted: n = 1, K = 1: x[0, 2]}}
      mlafix.store %z, %x[%t] group %g : tensor<?xf32, #mlafix.dim<"K">>, !rows
    }
  }
}

// A loaded flag selects a branch, and both branches store member 0 of all pairs. Member 1 is stored after the branches.
// expected-remark @below {{x: coverage: proved}}
// expected-remark @below {{x: one writer: proved}}
// expected-remark @below {{x: bounds: proved}}
// expected-remark @below {{flags: independence: proved}}
// expected-remark @below {{flags: bounds: proved}}
mlafix.kernel @branches(%x: !rows {mlafix.dims = ["n", "(K 2)"], mlafix.access = "write"},
    %flags: memref<?xi1, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %z = mlafix.splat %zero : f32 -> tensor<?xf32, #mlafix.dim<"K">>
    %flag = mlafix.load %flags[%t] : memref<?xi1, strided<[?], offset: ?>> -> i1
    scf.if %flag {
      mlafix.store %z, %x[%t] member %c0 : tensor<?xf32, #mlafix.dim<"K">>, !rows
    } else {
      mlafix.store %z, %x[%t] member %c0 : tensor<?xf32, #mlafix.dim<"K">>, !rows
    }
    mlafix.store %z, %x[%t] member %c1 : tensor<?xf32, #mlafix.dim<"K">>, !rows
  }
}

// A group index is beyond the last group.
// expected-remark @below {{x: one writer: proved}}
mlafix.kernel @beyond(%x: !rows {mlafix.dims = ["n", "(2 K)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %z = mlafix.splat %zero : f32 -> tensor<?xf32, #mlafix.dim<"K">>
    // expected-remark @below {{x: bounds: refuted: n = 1, i = 0: x[0, 2]}}
    mlafix.store %z, %x[%t] group %c2 : tensor<?xf32, #mlafix.dim<"K">>, !rows
  }
}

// -----

// A member index is beyond the last member.
!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>

// expected-remark @below {{x: one writer: proved}}
mlafix.kernel @beyond(%x: !rows {mlafix.dims = ["n", "(K 2)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %z = mlafix.splat %zero : f32 -> tensor<?xf32, #mlafix.dim<"K">>
    // expected-remark @below {{x: bounds: refuted: n = 1, K = 1, i = 0: x[0, 3]}}
    mlafix.store %z, %x[%t] member %c3 : tensor<?xf32, #mlafix.dim<"K">>, !rows
  }
}

// Each row of the grid stores one group of a tensor's row.
// expected-remark @below {{x: coverage: proved}}
// expected-remark @below {{x: one writer: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @shared(%x: !rows {mlafix.dims = ["n", "(2 K)"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t, %g) in (%n, %c2) {
    %z = mlafix.splat %zero : f32 -> tensor<?xf32, #mlafix.dim<"K">>
    mlafix.store %z, %x[%t] group %g : tensor<?xf32, #mlafix.dim<"K">>, !rows
  }
}

// -----

// A row of the grid reads what another one writes.
!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>

// expected-remark @below {{x: one writer: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @shared(%x: !rows {mlafix.dims = ["n", "(2 K)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t, %g) in (%n, %c2) {
    // expected-remark @below {{x: independence: refuted: n = 1, i = 0, j = 1: x[0, 0]}}
    %z = mlafix.load %x[%t] group %c0 : !rows -> tensor<?xf32, #mlafix.dim<"K">>
    // expected-note @below {{the other row's access}}
    mlafix.store %z, %x[%t] group %g : tensor<?xf32, #mlafix.dim<"K">>, !rows
  }
}
