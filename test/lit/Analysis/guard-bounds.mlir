// An access that is not proved to be in bounds gets a predicate that checks the indices. Other accesses stay unchanged.
// RUN: %mlafix-opt %s --mlafix-guard-bounds | FileCheck %s

!vec = memref<?xf32, strided<[?], offset: ?>>
!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>

// CHECK-LABEL: @gather
// CHECK-DAG: %[[M:.+]] = memref.dim %x
// CHECK-DAG: %[[N:.+]] = memref.dim %out
mlafix.kernel @gather(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"},
                      %table: !ints {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    // CHECK: mlafix.load %table[%{{.+}}] : memref
    %s = mlafix.load %table[%t] : !ints -> i32
    %i = arith.index_cast %s : i32 to index
    // CHECK: %[[I:.+]] = arith.index_cast
    // CHECK: %[[IN:.+]] = arith.cmpi ult, %[[I]], %[[M]] : index
    // CHECK: mlafix.load %x[%[[I]]] if %[[IN]] : memref
    %v = mlafix.load %x[%i] : !vec -> f32
    // CHECK: mlafix.store %{{.+}}, %out[%{{.+}}] : f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}

// The `else` value applies only if the kernel's own predicate is false. If only the guard is false, the load gives
// zero.
// CHECK-LABEL: @otherwise
mlafix.kernel @otherwise(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %x: !rows {mlafix.dims = ["m", "D"], mlafix.access = "read"},
                         %i: index, %p: i1, %s: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %one = arith.constant 1.0 : f32
    // CHECK: %[[IN:.+]] = arith.cmpi ult, %i, %{{.+}} : index
    // CHECK: %[[BOTH:.+]] = arith.andi %p, %[[IN]] : i1
    // CHECK: %[[ROW:.+]] = mlafix.load %x[%i] if %[[BOTH]] : memref
    // CHECK: %[[ONES:.+]] = mlafix.splat %cst
    // CHECK: %[[VALUE:.+]] = arith.select %p, %[[ROW]], %[[ONES]] : tensor
    %row = mlafix.load %x[%i] if %p else %one : !rows -> !tile
    // CHECK: mlafix.store %[[VALUE]], %out
    mlafix.store %row, %out[%t] : !tile, !rows
    // CHECK: %[[ELEMENT:.+]] = mlafix.load %x[%i, %s] if
    // CHECK: arith.select %p, %[[ELEMENT]], %cst
    %element = mlafix.load %x[%i, %s] if %p else %one : !rows -> f32
    mlafix.store %element, %out[%t, %c0] : f32, !rows
  }
}

// Only indices that are not proved to be in bounds are checked. A guard proves nothing for later accesses, so the load
// and the store both check %next.
// CHECK-LABEL: @some
mlafix.kernel @some(%x: memref<?x4x?xf32, strided<[?, ?, ?], offset: ?>> {mlafix.dims = ["n", "four", "k"], mlafix.access = "update"}, %s: i32, %next: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %x, %c0 : memref<?x4x?xf32, strided<[?, ?, ?], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %q = arith.remui %t, %c4 : index
    %i = arith.index_cast %s : i32 to index
    // CHECK: %[[A:.+]] = arith.cmpi ult, %[[I:.+]], %c4{{.*}} : index
    // CHECK: %[[B:.+]] = arith.cmpi ult, %next, %{{.+}} : index
    // CHECK: %[[BOTH:.+]] = arith.andi %[[A]], %[[B]] : i1
    // CHECK: mlafix.load %x[%{{.+}}, %[[I]], %next] if %[[BOTH]]
    %v = mlafix.load %x[%t, %i, %next] : memref<?x4x?xf32, strided<[?, ?, ?], offset: ?>> -> f32
    // CHECK-NOT: arith.andi
    // CHECK: %[[C:.+]] = arith.cmpi ult, %next
    // CHECK: mlafix.store %{{.+}}, %x[%{{.+}}, %{{.+}}, %next] if %[[C]]
    mlafix.store %v, %x[%t, %q, %next] : f32, memref<?x4x?xf32, strided<[?, ?, ?], offset: ?>>
  }
}

// A state in a loop: one check of the index is enough for the payload and the lse, since both are indexed along dim m.
// CHECK-LABEL: @states
// CHECK: %[[M:.+]] = memref.dim %parts
// CHECK: scf.for
// CHECK: %[[IN:.+]] = arith.cmpi ult, %[[I:.+]], %[[M]] : index
// CHECK-NEXT: mlafix.load_state %parts[%[[I]]] lse %lses[%[[I]]] if %[[IN]]
mlafix.kernel @states(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %parts: !rows {mlafix.dims = ["m", "D"], mlafix.access = "read"},
                      %lses: !vec {mlafix.dims = ["m"], mlafix.access = "read"}, %table: !ints {mlafix.dims = ["k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %k = memref.dim %table, %c0 : !ints
  mlafix.forall (%t) in (%n) {
    %none = mlafix.identity : !mlafix.state<"D", e>
    %all = scf.for %j = %c0 to %k step %c1 iter_args(%sum = %none) -> (!mlafix.state<"D", e>) {
      %s = mlafix.load %table[%j] : !ints -> i32
      %i = arith.index_cast %s : i32 to index
      %part = mlafix.load_state %parts[%i] lse %lses[%i] : !rows, !vec -> !mlafix.state<"D", e>
      %next = mlafix.merge %sum, %part : !mlafix.state<"D", e>
      scf.yield %next : !mlafix.state<"D", e>
    }
    mlafix.store_state %all to %out[%t] : !mlafix.state<"D", e>, !rows
  }
}

// If the payload and the lse of a stored state need different checks, they are stored separately. If the optional
// tensor `other` is omitted, the size of its dim is 0. So a check against this size must not guard the store to `out`.
// CHECK-LABEL: @stores
mlafix.kernel @stores(%out: !rows {mlafix.dims = ["m", "D"], mlafix.access = "update"}, %lse: !vec {mlafix.dims = ["m"], mlafix.access = "update", mlafix.optional},
                      %other: !vec {mlafix.dims = ["q"], mlafix.access = "update", mlafix.optional}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                      %l: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %table: !ints {mlafix.dims = ["n"], mlafix.access = "read"}, %p: i1) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %state = mlafix.load_state %x[%t] lse %l[%t] : !rows, !vec -> !mlafix.state<"D", e>
    %s = mlafix.load %table[%t] : !ints -> i32
    %i = arith.index_cast %s : i32 to index
    // CHECK: %[[IN:.+]] = arith.cmpi ult, %[[I:.+]], %[[M:.+]] : index
    // CHECK-NEXT: %[[BOTH:.+]] = arith.andi %p, %[[IN]]
    // CHECK-NEXT: mlafix.store_state %{{.+}} to %out[%[[I]]] lse %lse[%[[I]]] if %[[BOTH]]
    mlafix.store_state %state to %out[%i] lse %lse[%i] if %p : !mlafix.state<"D", e>, !rows, !vec
    // CHECK: %[[A:.+]] = arith.cmpi ult, %[[I]], %[[M]]
    // CHECK-NEXT: %[[B:.+]] = arith.cmpi ult, %{{.+}}, %[[Q:.+]] : index
    // CHECK-NEXT: mlafix.store_state %{{.+}} to %out[%[[I]]] if %[[A]]
    // CHECK-NEXT: mlafix.store_state %{{.+}} lse %other[%{{.+}}] if %[[B]]
    mlafix.store_state %state to %out[%i] lse %other[%t] : !mlafix.state<"D", e>, !rows, !vec
  }
}

// A load in the predicate of a ragged grid is guarded, too.
// CHECK-LABEL: @segments
mlafix.kernel @segments(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %lens: !ints {mlafix.dims = ["b"], mlafix.access = "read"},
                        %cu: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["b1"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.ragged_forall (%s, %t) in (%cu, %n) : memref<?xi32, strided<[1], offset: ?>> where {
    // CHECK: %[[IN:.+]] = arith.cmpi ult, %[[S:.+]], %{{.+}} : index
    // CHECK-NEXT: mlafix.load %lens[%[[S]]] if %[[IN]]
    %len = mlafix.load %lens[%s] : !ints -> i32
    %zero = arith.constant 0 : i32
    %p = arith.cmpi sle, %len, %zero : i32
    mlafix.yield %p : i1
  } do {
    %v = arith.constant 0.0 : f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}

// Slices of rows along r, whose size only the launch knows, are guarded. Slices along D are not. A slice is loaded or
// stored as a whole or not at all.
// CHECK-LABEL: @slices
// CHECK: %[[R:.+]] = memref.dim %y, %c1
mlafix.kernel @slices(%y: !rows {mlafix.dims = ["n", "r"], mlafix.access = "update"}, %x: !rows {mlafix.dims = ["n", "r"], mlafix.access = "read"},
                      %known: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // CHECK: %[[IN:.+]] = arith.cmpi ult, %c5, %[[R]] : index
    // CHECK: mlafix.load %x[%{{.+}}] slice 2 to 6 if %[[IN]]
    %a = mlafix.load %x[%t] slice 2 to 6 : !rows -> tensor<4xf32, #mlafix.dim<4>>
    // CHECK: mlafix.load %known[%{{[a-z0-9]+}}] slice 2 to 6 : memref
    %b = mlafix.load %known[%t] slice 2 to 6 : !rows -> tensor<4xf32, #mlafix.dim<4>>
    %c = arith.addf %a, %b : tensor<4xf32, #mlafix.dim<4>>
    // CHECK: %[[IN:.+]] = arith.cmpi ult, %c3, %[[R]] : index
    // CHECK: mlafix.store %{{.+}}, %y[%{{.+}}] slice 0 to 4 if %[[IN]]
    mlafix.store %c, %y[%t] slice 0 to 4 : tensor<4xf32, #mlafix.dim<4>>, !rows
  }
}
