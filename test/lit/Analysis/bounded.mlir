// A row along a dim with a bound may be empty. Its argmax is then 0, which is out of bounds. So an access at this index
// needs a guard, unless the launch checks that the row has an element.
// RUN: %mlafix-opt %s --mlafix-guard-bounds | FileCheck %s
!v = memref<?xf32, strided<[1], offset: ?>>
!s = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<8xf32, #mlafix.dim<"b" most 8>>
// CHECK-LABEL: mlafix.kernel @at_best
// CHECK: %[[IN:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : index
// CHECK: mlafix.load %x[%{{.*}}] if %[[IN]]
mlafix.kernel @at_best(%y: !s {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !v {mlafix.dims = ["b"], mlafix.access = "read"}) attributes {most = {b = 8}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !s
  mlafix.forall (%t) in (%n) {
    %row = mlafix.load %x[] : !v -> !tile
    %best = mlafix.arg_reduce max %row : !tile
    %i = arith.index_cast %best : i32 to index
    %e = mlafix.load %x[%i] : !v -> f32
    mlafix.store %e, %y[%t] : f32, !s
  }
}

// CHECK-LABEL: mlafix.kernel @at_best_of_some
// CHECK-NOT: arith.cmpi ult
// CHECK: mlafix.load %x[%{{.*}}] : {{.*}} -> f32
mlafix.kernel @at_best_of_some(%y: !s {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !v {mlafix.dims = ["b"], mlafix.access = "read"}) attributes {most = {b = 8}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !s
  %b = memref.dim %x, %c0 : !v
  %some = arith.cmpi sgt, %b, %c0 : index
  mlafix.assume %some, "b > 0"
  mlafix.forall (%t) in (%n) {
    %row = mlafix.load %x[] : !v -> !tile
    %best = mlafix.arg_reduce max %row : !tile
    %i = arith.index_cast %best : i32 to index
    %e = mlafix.load %x[%i] : !v -> f32
    mlafix.store %e, %y[%t] : f32, !s
  }
}

// Dim b is at most 8, so every index below b is in bounds of z, which has 8 elements.
// CHECK-LABEL: mlafix.kernel @below
// CHECK-NOT: arith.cmpi
mlafix.kernel @below(%x: !s {mlafix.dims = ["b"], mlafix.access = "read"}, %z: memref<8xf32, strided<[1], offset: ?>> {mlafix.dims = ["two"], mlafix.access = "update"}) attributes {most = {b = 8}} {
  %c0 = arith.constant 0 : index
  %b = memref.dim %x, %c0 : !s
  mlafix.forall (%t) in (%b) {
    %e = mlafix.load %x[%t] : !s -> f32
    mlafix.store %e, %z[%t] : f32, memref<8xf32, strided<[1], offset: ?>>
  }
}
