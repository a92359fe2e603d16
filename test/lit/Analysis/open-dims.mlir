// If the binding D=any leaves the size of an upper-case dim to the launch, rows along the dim may be shorter than a
// slice, or empty.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=any},mlafix.kernel(mlafix-prove{exhaustive=2}))" --verify-diagnostics=only-expected -o /dev/null
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=any},mlafix.kernel(mlafix-guard-bounds))" | FileCheck %s
// RUN: %mlafix-opt %s --mlafix-guard-bounds | FileCheck %s --check-prefix=BOUND

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!tiles = memref<?x4xf32, strided<[?, 1], offset: ?>>

// CHECK-LABEL: mlafix.kernel @put
// CHECK: %[[D:.+]] = memref.dim %y, %c1
// CHECK: %[[IN:.+]] = arith.cmpi ult, %c3, %[[D]] : index
// CHECK: mlafix.store %{{.+}}, %y[%{{.+}}] slice 0 to 4 if %[[IN]]
// BOUND-LABEL: mlafix.kernel @put
// BOUND-NOT: arith.cmpi
// BOUND: mlafix.store %{{.+}}, %y[%{{[a-z0-9]+}}] slice 0 to 4 :
mlafix.kernel @put(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %x: !tiles {mlafix.dims = ["n", "4"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %row = mlafix.load %x[%t] : !tiles -> tensor<4xf32, #mlafix.dim<4>>
    // expected-remark @below {{y: bounds: refuted: n = 1, D = 1, i = 0: y[0, 3]}}
    mlafix.store %row, %y[%t] slice 0 to 4 : tensor<4xf32, #mlafix.dim<4>>, !rows
  }
}

// CHECK-LABEL: mlafix.kernel @get
// CHECK: %[[IN:.+]] = arith.cmpi ult, %c3, %{{.+}} : index
// CHECK: mlafix.load %y[%{{.+}}] slice 2 to 4 if %[[IN]]
// BOUND-LABEL: mlafix.kernel @get
// BOUND-NOT: arith.cmpi
// BOUND: mlafix.load %y[%{{[a-z0-9]+}}] slice 2 to 4 :
mlafix.kernel @get(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %x: !tiles {mlafix.dims = ["n", "4"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // expected-remark @below {{y: bounds: refuted: n = 1, D = 0, i = 0: y[0, 3]}}
    %row = mlafix.load %y[%t] slice 2 to 4 : !rows -> tensor<2xf32, #mlafix.dim<2>>
    mlafix.store %row, %x[%t] slice 0 to 2 : tensor<2xf32, #mlafix.dim<2>>, !tiles
  }
}

// If D is bound to a size, the first element of a row exists, since no dim is bound to 0.
// CHECK-LABEL: mlafix.kernel @first
// CHECK: %[[IN:.+]] = arith.cmpi ult, %c0, %{{.+}} : index
// CHECK: mlafix.store %{{.+}}, %y[%{{.+}}, %c0] if %[[IN]]
// BOUND-LABEL: mlafix.kernel @first
// BOUND-NOT: arith.cmpi
// BOUND: mlafix.store %{{.+}}, %y[%{{[a-z0-9]+}}, %c0] :
mlafix.kernel @first(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %v: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // expected-remark @below {{y: bounds: refuted: n = 1, D = 0, i = 0: y[0, 0]}}
    mlafix.store %v, %y[%t, %c0] : f32, !rows
  }
}

// The proofs also use what a launch checks about the size.
// CHECK-LABEL: mlafix.kernel @checked
// CHECK-NOT: arith.cmpi ult
// CHECK: mlafix.store %{{.+}}, %y[%{{[a-z0-9]+}}] slice 0 to 4 :
mlafix.kernel @checked(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %x: !tiles {mlafix.dims = ["n", "4"], mlafix.access = "read"}) attributes {bounds = "prove"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %y, %c0 : !rows
  %D = memref.dim %y, %c1 : !rows
  %fits = arith.cmpi sge, %D, %c4 : index
  mlafix.assume %fits, "D >= 4"
  mlafix.forall (%t) in (%n) {
    %row = mlafix.load %x[%t] : !tiles -> tensor<4xf32, #mlafix.dim<4>>
    mlafix.store %row, %y[%t] slice 0 to 4 : tensor<4xf32, #mlafix.dim<4>>, !rows
  }
}
