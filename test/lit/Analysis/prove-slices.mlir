// Stored slices together cover a row, or leave elements out. Also tests rows of the grid that share a row of a tensor.
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

// The load reads a slice whose last element was not written before.
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

// -----

// A slice is stored as a whole or not at all. If a row is shorter than the slice, its elements stay unwritten, and a
// load may read them.
!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
// expected-remark @below {{y: one writer: proved}}
mlafix.kernel @shorter(%y: !rows {mlafix.dims = ["n", "v"], mlafix.access = "write"}, %s: f32) attributes {most = {v = 4}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %a = mlafix.splat %s : f32 -> tensor<4xf32, #mlafix.dim<4>>
    // expected-remark @below {{y: coverage: refuted: n = 1, v = 1: y[0, 0]}}
    // expected-remark @below {{y: bounds: refuted: n = 1, v = 1, i = 0: y[0, 3]}}
    mlafix.store %a, %y[%t] slice 0 to 4 : tensor<4xf32, #mlafix.dim<4>>, !rows
  }
}

!vec = memref<?xf32, strided<[?], offset: ?>>
// expected-remark @below {{y: coverage: proved}}
// expected-remark @below {{y: one writer: proved}}
// expected-remark @below {{y: independence: proved}}
// expected-remark @below {{z: coverage: proved}}
// expected-remark @below {{z: one writer: proved}}
// expected-remark @below {{z: bounds: proved}}
mlafix.kernel @read_of_shorter(%y: !rows {mlafix.dims = ["n", "v"], mlafix.access = "write"}, %z: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %s: f32) attributes {most = {v = 4}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %a = mlafix.splat %s : f32 -> tensor<4xf32, #mlafix.dim<4>>
    // expected-remark @below {{y: bounds: refuted: n = 1, v = 1, i = 0: y[0, 3]}}
    mlafix.store %a, %y[%t] slice 0 to 4 : tensor<4xf32, #mlafix.dim<4>>, !rows
    // expected-remark @below {{y: written before read: refuted: n = 1, v = 1, i = 0: y[0, 0]}}
    %first = mlafix.load %y[%t, %c0] : !rows -> f32
    mlafix.store %first, %z[%t] : f32, !vec
    %row = mlafix.splat %s : f32 -> tensor<4xf32, #mlafix.dim<"v" most 4>>
    mlafix.store %row, %y[%t] : tensor<4xf32, #mlafix.dim<"v" most 4>>, !rows
  }
}

// Slices count as written if a launch checks that rows are long enough.
// expected-remark @below {{y: coverage: proved}}
// expected-remark @below {{y: one writer: proved}}
// expected-remark @below {{y: bounds: proved}}
mlafix.kernel @long_enough(%y: !rows {mlafix.dims = ["n", "v"], mlafix.access = "write"}, %s: f32) attributes {most = {v = 4}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %y, %c0 : !rows
  %v = memref.dim %y, %c1 : !rows
  %fits = arith.cmpi sge, %v, %c4 : index
  mlafix.assume %fits, "v >= 4"
  mlafix.forall (%t) in (%n) {
    %a = mlafix.splat %s : f32 -> tensor<4xf32, #mlafix.dim<4>>
    mlafix.store %a, %y[%t] slice 0 to 4 : tensor<4xf32, #mlafix.dim<4>>, !rows
  }
}

// -----

// Branches may split a row at different places. The row is covered if each branch writes all of it. An element is left
// out if one branch leaves it out.
!rows = memref<?x16xf32, strided<[?, 1], offset: ?>>
!flags = memref<?xi1, strided<[?], offset: ?>>
// expected-remark @below {{y: coverage: proved}}
// expected-remark @below {{y: one writer: proved}}
// expected-remark @below {{y: bounds: proved}}
// expected-remark @below {{z: one writer: proved}}
// expected-remark @below {{z: bounds: proved}}
// expected-remark @below {{flags: independence: proved}}
// expected-remark @below {{flags: bounds: proved}}
mlafix.kernel @cut_by_branches(%y: !rows {mlafix.dims = ["n", "16"], mlafix.access = "write"}, %z: !rows {mlafix.dims = ["n", "16"], mlafix.access = "write"},
                               %flags: !flags {mlafix.dims = ["n"], mlafix.access = "read"}, %s: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  %four = mlafix.splat %s : f32 -> tensor<4xf32, #mlafix.dim<4>>
  %eight = mlafix.splat %s : f32 -> tensor<8xf32, #mlafix.dim<8>>
  %twelve = mlafix.splat %s : f32 -> tensor<12xf32, #mlafix.dim<12>>
  mlafix.forall (%t) in (%n) {
    %flag = mlafix.load %flags[%t] : !flags -> i1
    scf.if %flag {
      mlafix.store %eight, %y[%t] slice 0 to 8 : tensor<8xf32, #mlafix.dim<8>>, !rows
      mlafix.store %eight, %y[%t] slice 8 to 16 : tensor<8xf32, #mlafix.dim<8>>, !rows
      mlafix.store %twelve, %z[%t] slice 0 to 12 : tensor<12xf32, #mlafix.dim<12>>, !rows
    } else {
      mlafix.store %four, %y[%t] slice 0 to 4 : tensor<4xf32, #mlafix.dim<4>>, !rows
      mlafix.store %twelve, %y[%t] slice 4 to 16 : tensor<12xf32, #mlafix.dim<12>>, !rows
      mlafix.store %four, %z[%t] slice 0 to 4 : tensor<4xf32, #mlafix.dim<4>>, !rows
      // expected-remark @below {{z: coverage: refuted: n = 1, what is read from flags is 1: z[0, 12]}}
      mlafix.store %twelve, %z[%t] slice 4 to 16 : tensor<12xf32, #mlafix.dim<12>>, !rows
    }
  }
}

// Two rows that store splats of one number store equal elements, which counts as one writer. The elements of a scan of
// such a splat differ, so rows that store the scan to different slices store different elements.
!row = memref<9xf32, strided<[1], offset: ?>>
!ids = memref<?xf32, strided<[?], offset: ?>>
// expected-remark @below {{y: one writer: proved}}
// expected-remark @below {{y: bounds: proved}}
// expected-remark @below {{z: bounds: proved}}
mlafix.kernel @one_number(%y: !row {mlafix.dims = ["9"], mlafix.access = "update"}, %z: !row {mlafix.dims = ["9"], mlafix.access = "update"},
                          %x: !ids {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !ids
  mlafix.forall (%t) in (%n) {
    %one = arith.constant 1.0 : f32
    %a = mlafix.splat %one : f32 -> tensor<9xf32, #mlafix.dim<9>>
    %b = mlafix.splat %one : f32 -> tensor<8xf32, #mlafix.dim<8>>
    %sum = mlafix.scan add %b : tensor<8xf32, #mlafix.dim<8>>
    %first = arith.cmpi eq, %t, %c0 : index
    %second = arith.cmpi eq, %t, %c1 : index
    mlafix.store %a, %y[] if %first : tensor<9xf32, #mlafix.dim<9>>, !row
    mlafix.store %b, %y[] slice 0 to 8 if %second : tensor<8xf32, #mlafix.dim<8>>, !row
    // expected-note @below {{the other row's access}}
    mlafix.store %sum, %z[] slice 0 to 8 if %first : tensor<8xf32, #mlafix.dim<8>>, !row
    // expected-remark @below {{z: one writer: refuted: n = 2, i = 1: z[1]}}
    mlafix.store %sum, %z[] slice 1 to 9 if %second : tensor<8xf32, #mlafix.dim<8>>, !row
  }
}
