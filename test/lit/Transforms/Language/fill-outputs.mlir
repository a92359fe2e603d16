// For an output with a fill, the pass adds a store that writes the elements which no other store writes.
// RUN: %mlafix-opt %s --mlafix-fill-outputs --canonicalize --split-input-file --verify-diagnostics=only-expected | FileCheck %s
// RUN: not %mlafix-opt %s --mlafix-fill-outputs --canonicalize --split-input-file --mlafix-prove=refuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROVED --implicit-check-not="to be written"

// The second run shows that the added stores make coverage provable: no error says that elements stay unwritten.
// PROVED: error: fill of 'out': expected a grid

!vec = memref<?xf32, strided<[?], offset: ?>>
!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>

// CHECK-LABEL: mlafix.kernel @predicate
// CHECK-NOT: mlafix.fill
// CHECK: mlafix.store %{{.+}}, %out[%[[T:.+]]] if %[[P:.+]] : f32
// CHECK: %[[LEFT:.+]] = arith.xori %[[P]], %true
// CHECK: mlafix.store %cst, %out[%[[T]]] if %[[LEFT]] : f32
mlafix.kernel @predicate(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write", mlafix.fill = 7.0 : f32},
                         %flags: memref<?xi1, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}, %x: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %p = mlafix.load %flags[%t] : memref<?xi1, strided<[?], offset: ?>> -> i1
    mlafix.store %x, %out[%t] if %p : f32, !vec
  }
}

// A payload is filled with 0 and its lse with -inf. The added store uses its indices in the same order as the kernel's
// own store.
// CHECK-LABEL: mlafix.kernel @states
// CHECK-DAG: %[[EMPTY:.+]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK: mlafix.store_state %{{.+}} to %out[%[[T:.+]]] lse %lse[%[[H:.+]], %[[T]]] if %{{.+}} :
// CHECK: %[[LEFT:.+]] = arith.cmpi eq, %{{.+}}, %c0_i32 : i32
// CHECK: %[[ROW:.+]] = mlafix.splat %[[ZERO]]
// CHECK: mlafix.store %[[ROW]], %out[%[[T]]] if %[[LEFT]] : tensor
// CHECK: mlafix.store %[[EMPTY]], %lse[%[[H]], %[[T]]] if %{{.+}} : f32
mlafix.kernel @states(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write", mlafix.fill = "identity"},
                      %lse: memref<1x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["one", "n"], mlafix.access = "write", mlafix.optional, mlafix.fill = "identity"},
                      %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %l: !vec {mlafix.dims = ["n"], mlafix.access = "read"},
                      %flags: !ints {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %c1) {
    %f = mlafix.load %flags[%t] : !ints -> i32
    %zero = arith.constant 0 : i32
    %p = arith.cmpi ne, %f, %zero : i32
    %s = mlafix.load_state %x[%t] lse %l[%t] : !rows, !vec -> !mlafix.state<"D", e>
    mlafix.store_state %s to %out[%t] lse %lse[%h, %t] if %p : !mlafix.state<"D", e>, !rows, memref<1x?xf32, strided<[?, ?], offset: ?>>
  }
}

// Each branch yields whether it has stored. A branch that always stores needs no additional store.
// CHECK-LABEL: mlafix.kernel @branches
// CHECK: %[[DONE:.+]] = arith.select %[[P:.+]], %q, %true
// CHECK: scf.if %[[P]] {
// CHECK: %[[LEFT:.+]] = arith.xori %[[DONE]], %true
// CHECK: mlafix.store %{{.+}}, %out[%{{.+}}] if %[[LEFT]]
// CHECK-NOT: mlafix.store
mlafix.kernel @branches(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write", mlafix.fill = 0.0 : f32},
                        %all: !vec {mlafix.dims = ["n"], mlafix.access = "write", mlafix.fill = 1.0 : f32},
                        %flags: memref<?xi1, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}, %q: i1, %x: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %p = mlafix.load %flags[%t] : memref<?xi1, strided<[?], offset: ?>> -> i1
    scf.if %p {
      mlafix.store %x, %out[%t] if %q : f32, !vec
    } else {
      mlafix.store %x, %out[%t] : f32, !vec
    }
    %y = scf.if %p -> f32 {
      mlafix.store %x, %all[%t] : f32, !vec
      scf.yield %x : f32
    } else {
      %z = arith.addf %x, %x : f32
      mlafix.store %z, %all[%t] : f32, !vec
      scf.yield %z : f32
    }
  }
}

// An output of integers is filled with the given number, or with 0 for the identity. The number 1 becomes true in an
// i1.
// CHECK-LABEL: mlafix.kernel @integers
// CHECK: mlafix.store %c-1_i32, %out
// CHECK: mlafix.store %c0_i32, %empty
// CHECK: mlafix.store %true{{.*}}, %flags
mlafix.kernel @integers(%out: !ints {mlafix.dims = ["n"], mlafix.access = "write", mlafix.fill = -1},
                        %empty: !ints {mlafix.dims = ["n"], mlafix.access = "write", mlafix.fill = "identity"},
                        %flags: memref<?xi1, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write", mlafix.fill = 1}, %q: i1, %x: i32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !ints
  mlafix.forall (%t) in (%n) {
    mlafix.store %x, %out[%t] if %q : i32, !ints
    mlafix.store %x, %empty[%t] if %q : i32, !ints
    mlafix.store %q, %flags[%t] if %q : i1, memref<?xi1, strided<[?], offset: ?>>
  }
}

// -----

!vec = memref<?xf32, strided<[?], offset: ?>>
mlafix.kernel @fewer_rows(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write", mlafix.fill = 0.0 : f32}, %y: !vec {mlafix.dims = ["m"], mlafix.access = "read"}, %x: f32) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %y, %c0 : !vec
  mlafix.forall (%t) in (%m) {
    // expected-error @below {{fill of 'out': expected a grid with one row for each row that is stored, got a store at other indices than the grid's}}
    mlafix.store %x, %out[%t] : f32, !vec
  }
}

// -----

!vec = memref<?xf32, strided<[?], offset: ?>>
mlafix.kernel @more_rows(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write", mlafix.fill = 0.0 : f32}, %y: !vec {mlafix.dims = ["m"], mlafix.access = "read"}, %x: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  %m = memref.dim %y, %c0 : !vec
  mlafix.forall (%t, %h) in (%n, %m) {
    // expected-error @below {{got a store at other indices than the grid's}}
    mlafix.store %x, %out[%t] : f32, !vec
  }
}

// -----

!rows = memref<?x2xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @two_indices(%out: !rows {mlafix.dims = ["n", "two"], mlafix.access = "write", mlafix.fill = 0.0 : f32}, %x: f32, %p: i1) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t, %j) in (%n, %c2) {
    mlafix.store %x, %out[%t, %j] if %p : f32, !rows
    // expected-error @below {{got stores at several indices}}
    mlafix.store %x, %out[%t, %c0] : f32, !rows
  }
}

// -----

!vec = memref<?xf32, strided<[?], offset: ?>>
mlafix.kernel @loop(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write", mlafix.fill = 0.0 : f32}, %x: f32, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{got a store in a loop}}
    scf.for %j = %c0 to %k step %c1 {
      mlafix.store %x, %out[%t] : f32, !vec
    }
  }
}

// -----

!vec = memref<?xf32, strided<[?], offset: ?>>
// expected-error @below {{got no store}}
mlafix.kernel @nothing(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write", mlafix.fill = 0.0 : f32}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {}
}

// -----

!vec = memref<?xf32, strided<[?], offset: ?>>
mlafix.kernel @ragged(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write", mlafix.fill = 0.0 : f32}, %x: f32,
                      %cu: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["b1"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  // expected-error @below {{got a ragged grid, whose segments may leave rows out; declare 'out' with access "update" (InOut), and fill it before}}
  mlafix.ragged_forall (%s, %t) in (%cu, %n) : memref<?xi32, strided<[1], offset: ?>> where {
    %true = arith.constant true
    mlafix.yield %true : i1
  } do {
    mlafix.store %x, %out[%t] : f32, !vec
  }
}

// -----

// A kernel without a grid has no rows.
// expected-error @below {{got no grid}}
mlafix.kernel @thread(%out: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write", mlafix.fill = 0.0 : f32})
    attributes {geometry = #mlafix.grid<[<arg = 0, dim = 0>], rows_per_block = 1, threads = 128, least_threads = 128>, guards = [],
                plan = #mlafix.plan<layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {}
