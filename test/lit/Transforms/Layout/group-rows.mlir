// Some rows along G are broadcast over groups, or result from the reduction of groups. The pass gives them a type that
// says so (`4 per 128`). It gives the same type to the rows that arithmetic, loops and branches combine with them.
// Other rows keep their type.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(mlafix.kernel(mlafix-group-rows))" | FileCheck %s

!x = memref<?x512xf32, strided<[?, 1], offset: ?>>
!s = memref<?x4xf32, strided<[?, 1], offset: ?>>
!row = tensor<512xf32, #mlafix.dim<4 x 128>>
!each = tensor<4xf32, #mlafix.dim<4>>

// CHECK-LABEL: mlafix.kernel @all(
mlafix.kernel @all(%x: !x {mlafix.dims = ["n", "(4 128)"], mlafix.access = "update"},
                   %s: !s {mlafix.dims = ["n", "G"], mlafix.access = "update"},
                   %o: !s {mlafix.dims = ["n", "G"], mlafix.access = "update"},
                   %k: index) attributes {bindings = {G = 4}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !x
  %two = arith.constant dense<2.0> : !each
  mlafix.forall (%t) in (%n) {
    // CHECK: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<4xf32, #mlafix.dim<4>>
    // CHECK: mlafix.load %x
    %v = mlafix.load %x[%t] : !x -> !row
    // CHECK: mlafix.load %s{{.*}} -> tensor<4xf32, #mlafix.dim<4 per 128>>
    %a = mlafix.load %s[%t] : !s -> !each
    // CHECK: scf.for {{.*}} -> (tensor<4xf32, #mlafix.dim<4 per 128>>)
    %b = scf.for %i = %c0 to %k step %c1 iter_args(%r = %a) -> (!each) {
      // CHECK: arith.mulf {{.*}} : tensor<4xf32, #mlafix.dim<4 per 128>>
      %next = arith.mulf %r, %two : !each
      scf.yield %next : !each
    }
    %p = arith.cmpi ult, %t, %k : index
    // CHECK: scf.if {{.*}} -> (tensor<4xf32, #mlafix.dim<4 per 128>>)
    %c = scf.if %p -> (!each) {
      scf.yield %b : !each
    } else {
      // CHECK: mlafix.load %o{{.*}} -> tensor<4xf32, #mlafix.dim<4 per 128>>
      %other = mlafix.load %o[%t] : !s -> !each
      scf.yield %other : !each
    }
    // CHECK: mlafix.broadcast {{.*}} : tensor<4xf32, #mlafix.dim<4 per 128>> -> tensor<512xf32, #mlafix.dim<4 x 128>>
    %d = mlafix.broadcast %c : !each -> !row
    %e = arith.addf %v, %d : !row
    // CHECK: mlafix.reduce max {{.*}} -> tensor<4xf32, #mlafix.dim<4 per 128>>
    %m = mlafix.reduce max %e : !row -> !each
    // CHECK: mlafix.store {{.*}} : tensor<4xf32, #mlafix.dim<4 per 128>>
    mlafix.store %m, %s[%t] : !each, !s
    mlafix.store %e, %x[%t] : !row, !x
    // A row that is not combined with groups keeps its type.
    // CHECK: arith.addf %[[TWO]], %[[TWO]] : tensor<4xf32, #mlafix.dim<4>>
    %f = arith.addf %two, %two : !each
    mlafix.store %f, %o[%t] : !each, !s
  }
}

// -----

!s = memref<?x4xf32, strided<[?, 1], offset: ?>>
!each = tensor<4xf32, #mlafix.dim<4>>
mlafix.kernel @two(%s: !s {mlafix.dims = ["n", "G"], mlafix.access = "read"},
                   %y: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"}) attributes {bindings = {G = 4}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %s, %c0 : !s
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{expected groups of one size for this row, got 128 and 64}}
    %a = mlafix.load %s[%t] : !s -> !each
    %b = mlafix.broadcast %a : !each -> tensor<512xf32, #mlafix.dim<4 x 128>>
    %c = mlafix.broadcast %a : !each -> tensor<256xf32, #mlafix.dim<4 x 64>>
    %d = mlafix.reduce add %b : tensor<512xf32, #mlafix.dim<4 x 128>>
    %e = mlafix.reduce add %c : tensor<256xf32, #mlafix.dim<4 x 64>>
    %f = arith.addf %d, %e : f32
    mlafix.store %f, %y[%t] : f32, memref<?xf32, strided<[1], offset: ?>>
  }
}

// -----

!s = memref<?x4xf32, strided<[?, 1], offset: ?>>
!each = tensor<4xf32, #mlafix.dim<4>>
mlafix.kernel @swapped(%s: !s {mlafix.dims = ["n", "G"], mlafix.access = "update"},
                       %y: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"}) attributes {bindings = {G = 4}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %s, %c0 : !s
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %s[%t] : !s -> !each
    %b = mlafix.broadcast %a : !each -> tensor<512xf32, #mlafix.dim<4 x 128>>
    %c = mlafix.reduce add %b : tensor<512xf32, #mlafix.dim<4 x 128>>
    // expected-error @below {{swap: expected a row that no operation combines with a row along a product, got one along 4 combined with groups of 128}}
    %d = mlafix.swap %a by 2 : !each
    mlafix.store %d, %s[%t] : !each, !s
    mlafix.store %c, %y[%t] : f32, memref<?xf32, strided<[1], offset: ?>>
  }
}
