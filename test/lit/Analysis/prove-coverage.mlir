// Coverage: every element of an output is written, whatever memory holds.
// RUN: %mlafix-opt %s --canonicalize --mlafix-prove --split-input-file --verify-diagnostics -o /dev/null

!vec = memref<?xf32, strided<[?], offset: ?>>
!flags = memref<?xi1, strided<[?], offset: ?>>

// Two branches of an unknown flag write each row.
// expected-remark @below {{out: coverage: proved}}
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{flags: independence: proved}}
// expected-remark @below {{flags: bounds: proved}}
mlafix.kernel @both_branches(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"},
                             %flags: !flags {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %flag = mlafix.load %flags[%t] : !flags -> i1
    scf.if %flag {
      mlafix.store %one, %out[%t] : f32, !vec
    } else {
      mlafix.store %zero, %out[%t] : f32, !vec
    }
  }
}

// -----

!vec = memref<?xf32, strided<[?], offset: ?>>
!flags = memref<?xi1, strided<[?], offset: ?>>

// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{flags: independence: proved}}
// expected-remark @below {{flags: bounds: proved}}
mlafix.kernel @no_else(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"},
                       %flags: !flags {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %one = arith.constant 1.0 : f32
    %flag = mlafix.load %flags[%t] : !flags -> i1
    // expected-remark @below {{out: coverage: refuted: n = 1, what is read from flags is 0: out[0]}}
    mlafix.store %one, %out[%t] if %flag : f32, !vec
  }
}

// -----

!vec = memref<?xf32, strided<[?], offset: ?>>

// A threshold, both sides.
// expected-remark @below {{out: coverage: proved}}
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
mlafix.kernel @threshold(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %live: index {mlafix.at_most = "n"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %is_live = arith.cmpi slt, %t, %live : index
    %is_pad = arith.cmpi sge, %t, %live : index
    mlafix.store %one, %out[%t] if %is_live : f32, !vec
    mlafix.store %zero, %out[%t] if %is_pad : f32, !vec
  }
}

// -----

!vec = memref<?xf32, strided<[?], offset: ?>>

// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
mlafix.kernel @threshold_off_by_one(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %live: index {mlafix.at_most = "n"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %is_live = arith.cmpi slt, %t, %live : index
    %is_pad = arith.cmpi sgt, %t, %live : index
    // expected-remark @below {{out: coverage: refuted: n = 1, live = 0: out[0]}}
    mlafix.store %one, %out[%t] if %is_live : f32, !vec
    mlafix.store %zero, %out[%t] if %is_pad : f32, !vec
  }
}

// -----

!vec = memref<?xf32, strided<[?], offset: ?>>

// A loop writes pairs, of a length that may be odd.
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
mlafix.kernel @pairs(%out: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["n", "l"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %out, %c0 : memref<?x?xf32, strided<[?, ?], offset: ?>>
  %l = memref.dim %out, %c1 : memref<?x?xf32, strided<[?, ?], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %half = arith.divui %l, %c2 : index
    scf.for %k = %c0 to %half step %c1 {
      %a = arith.addi %k, %k : index
      %b = arith.addi %a, %c1 : index
      // expected-remark @below {{out: coverage: refuted: n = 1, l = 1: out[0, 0]}}
      mlafix.store %zero, %out[%t, %a] : f32, memref<?x?xf32, strided<[?, ?], offset: ?>>
      mlafix.store %zero, %out[%t, %b] : f32, memref<?x?xf32, strided<[?, ?], offset: ?>>
    }
  }
}
