// The signature allows calls in place only if every access of a row uses that row's own indices (N11).
// RUN: %mlafix-opt %s --split-input-file --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64})" | FileCheck %s
!vec = memref<?xf32, strided<[1], offset: ?>>

// CHECK: aliases = {{\[\[}}0, 1]]
mlafix.kernel @same_row(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %in: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %in[%t] : !vec -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}

// -----

!vec = memref<?xf32, strided<[1], offset: ?>>
// Other rows of the grid read the element that this row overwrites.
// CHECK: aliases = []
mlafix.kernel @shared_row(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %in: !vec {mlafix.dims = ["n"], mlafix.access = "read"},
                          %h: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t, %i) in (%n, %h) {
    %v = mlafix.load %in[%t] : !vec -> f32
    %first = arith.cmpi eq, %i, %c0 : index
    mlafix.store %v, %out[%t] if %first : f32, !vec
  }
}

// -----

!vec = memref<?xf32, strided<[1], offset: ?>>
// A row may also read the tensor that it writes, before or after it reads the other tensor.
// CHECK: aliases = {{\[\[}}0, 1]]
mlafix.kernel @update_read_first(%y: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %y[%t] : !vec -> f32
    %b = mlafix.load %x[%t] : !vec -> f32
    %sum = arith.addf %a, %b : f32
    mlafix.store %sum, %y[%t] : f32, !vec
  }
}

// -----

!vec = memref<?xf32, strided<[1], offset: ?>>
// CHECK: aliases = {{\[\[}}0, 1]]
mlafix.kernel @update_read_last(%y: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %b = mlafix.load %x[%t] : !vec -> f32
    %a = mlafix.load %y[%t] : !vec -> f32
    %sum = arith.addf %b, %a : f32
    mlafix.store %sum, %y[%t] : f32, !vec
  }
}

// -----

!vec = memref<?xf32, strided<[1], offset: ?>>
// A load of x follows a store to y. It sees the stored value if x and y are the same tensor.
// CHECK: aliases = []
mlafix.kernel @update_between(%y: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %y[%t] : !vec -> f32
    mlafix.store %a, %y[%t] : f32, !vec
    %b = mlafix.load %x[%t] : !vec -> f32
    %sum = arith.addf %a, %b : f32
    mlafix.store %sum, %y[%t] : f32, !vec
  }
}

// -----

!vec = memref<?xf32, strided<[1], offset: ?>>
// If `in` and `out` were the same tensor, the load after the store would see the stored value.
// CHECK: aliases = []
mlafix.kernel @late_read(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %in: !vec {mlafix.dims = ["n"], mlafix.access = "read"},
                         %more: !vec {mlafix.dims = ["m"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %one = arith.constant 1.0 : f32
    mlafix.store %one, %out[%t] : f32, !vec
    %v = mlafix.load %in[%t] : !vec -> f32
    mlafix.store %v, %more[%t] : f32, !vec
  }
}

// -----

!mat = memref<?x2xf32, strided<[?, 1], offset: ?>>
// All elements of a row are loaded before the first one is stored, so `in` and `out` may be the same tensor.
// CHECK: aliases = {{\[\[}}0, 1]]
mlafix.kernel @elements_of_a_row(%out: !mat {mlafix.dims = ["n", "two"], mlafix.access = "write"},
                                 %in: !mat {mlafix.dims = ["n", "two"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !mat
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %in[%t, %c0] : !mat -> f32
    %b = mlafix.load %in[%t, %c1] : !mat -> f32
    mlafix.store %b, %out[%t, %c0] : f32, !mat
    mlafix.store %a, %out[%t, %c1] : f32, !mat
  }
}

// -----

!mat = memref<?x2xf32, strided<[?, 1], offset: ?>>
// The second element is loaded after the first is stored, so a call in place is not allowed.
// CHECK: aliases = []
mlafix.kernel @elements_in_turn(%out: !mat {mlafix.dims = ["n", "two"], mlafix.access = "write"},
                                %in: !mat {mlafix.dims = ["n", "two"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !mat
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %in[%t, %c0] : !mat -> f32
    mlafix.store %a, %out[%t, %c0] : f32, !mat
    %b = mlafix.load %in[%t, %c1] : !mat -> f32
    mlafix.store %b, %out[%t, %c1] : f32, !mat
  }
}

// -----

!mat = memref<?x?xf32, strided<[?, 1], offset: ?>>
// A row loads with its two indices exchanged, so it reads an element that another row writes.
// CHECK: aliases = []
mlafix.kernel @turned(%out: !mat {mlafix.dims = ["n", "n"], mlafix.access = "write"},
                      %in: !mat {mlafix.dims = ["n", "n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !mat
  mlafix.forall (%t, %i) in (%n, %n) {
    %a = mlafix.load %in[%i, %t] : !mat -> f32
    mlafix.store %a, %out[%t, %i] : f32, !mat
  }
}
