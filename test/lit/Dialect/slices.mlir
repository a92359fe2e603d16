// Slices of rows are printed and parsed. Wrong slices are refused, some of them only when names are bound.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --mlir-print-op-generic -o /dev/null

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
// CHECK-LABEL: mlafix.kernel @slices
mlafix.kernel @slices(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %p: i1) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // CHECK: %[[A:.*]] = mlafix.load %x[%{{.*}}] slice 2 to 6 if %p : memref<{{.*}}> -> tensor<4xf32, #mlafix.dim<4>>
    %a = mlafix.load %x[%t] slice 2 to 6 if %p : !rows -> tensor<4xf32, #mlafix.dim<4>>
    // CHECK: %[[B:.*]] = mlafix.load %x[%{{.*}}] slice 0 to 4 : memref<{{.*}}> -> tensor<?xf32, #mlafix.dim<"E">>
    %b = mlafix.load %x[%t] slice 0 to 4 : !rows -> tensor<?xf32, #mlafix.dim<"E">>
    // CHECK: mlafix.load_into %x[%{{.*}}] slice 1 to 3 from 2 each 2 : memref<{{.*}}> -> tensor<8xf32, #mlafix.dim<8>>
    %c = mlafix.load_into %x[%t] slice 1 to 3 from 2 each 2 : !rows -> tensor<8xf32, #mlafix.dim<8>>
    // CHECK: mlafix.store %[[A]], %x[%{{.*}}] slice 4 to 8 if %p : tensor<4xf32, #mlafix.dim<4>>, memref<{{.*}}>
    mlafix.store %a, %x[%t] slice 4 to 8 if %p : tensor<4xf32, #mlafix.dim<4>>, !rows
    // CHECK: mlafix.store %[[B]], %x[%{{.*}}] slice 0 to 4 : tensor<?xf32, #mlafix.dim<"E">>, memref<{{.*}}>
    mlafix.store %b, %x[%t] slice 0 to 4 : tensor<?xf32, #mlafix.dim<"E">>, !rows
  }
}

// -----

!rows = memref<?x24xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "24"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected a slice of one element or more of 'x', with ends from 0 to the row's 24, got 20 to 25}}
    %v = mlafix.load %x[%t] slice 20 to 25 : !rows -> tensor<5xf32, #mlafix.dim<5>>
  }
}

// -----

!rows = memref<?x24xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "24"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected a slice of one element or more of 'x', with ends from 0 to the row's 24, got 4 to 4}}
    %v = mlafix.load_into %x[%t] slice 4 to 4 from 0 : !rows -> tensor<5xf32, #mlafix.dim<5>>
  }
}

// -----

!rows = memref<?x24xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "24"], mlafix.access = "update"}, %v: f32) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %row = mlafix.splat %v : f32 -> tensor<5xf32, #mlafix.dim<5>>
    // expected-error @below {{expected a row of 4 elements for the slice 0 to 4 of 'x', got one of 5}}
    mlafix.store %row, %x[%t] slice 0 to 4 : tensor<5xf32, #mlafix.dim<5>>, !rows
  }
}

// -----

!rows = memref<?x24xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "24"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected a row of 1 elements for the slice 3 to 4 of 'x', got an element}}
    %v = mlafix.load %x[%t] slice 3 to 4 : !rows -> f32
  }
}

// -----

!rows = memref<?x24xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "(4 6)"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected the last dim of 'x' to have one name or size, since a slice is taken of it, got (4 6)}}
    %v = mlafix.load %x[%t] slice 0 to 4 : !rows -> tensor<4xf32, #mlafix.dim<4>>
  }
}

// -----

!rows = memref<?x24xf4E2M1FN, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "24"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected a slice that begins at an even element of 'x', which is f4e2m1 (two elements a byte), got 1}}
    %v = mlafix.load %x[%t] slice 1 to 5 : !rows -> tensor<4xf32, #mlafix.dim<4>>
  }
}

// -----

!rows = memref<?x24xf32, strided<[?, ?], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "24"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected the last dim of 'x' to have stride 1 (N12)}}
    %v = mlafix.load %x[%t] slice 0 to 4 : !rows -> tensor<4xf32, #mlafix.dim<4>>
  }
}

// -----

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "b"], mlafix.access = "update"}) attributes {most = {b = 24}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected a slice of one element or more of 'x', with ends from 0 to the row's bound, 24, got 20 to 25}}
    %v = mlafix.load %x[%t] slice 20 to 25 : !rows -> tensor<5xf32, #mlafix.dim<5>>
  }
}

// -----

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!wide = memref<?x80xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "b"], mlafix.access = "read"}, %y: !wide {mlafix.dims = ["n", "80"], mlafix.access = "update"}) attributes {most = {b = 4}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %v = mlafix.load %x[%t] : !rows -> tensor<4xf32, #mlafix.dim<"b" most 4>>
    // expected-error @below {{expected a row of 4 elements for the slice 0 to 4 of 'y', got one along "b<=4"}}
    mlafix.store %v, %y[%t] slice 0 to 4 : tensor<4xf32, #mlafix.dim<"b" most 4>>, !wide
  }
}
