// top_k is printed and parsed, and wrong uses are refused. Also tests reductions of booleans and of i64.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics | FileCheck %s

!tile = tensor<24xf32, #mlafix.dim<24>>
!groups = tensor<24xi32, #mlafix.dim<4 x 6>>
!each = tensor<4xi32, #mlafix.dim<4>>
// CHECK-LABEL: mlafix.kernel @found
mlafix.kernel @found(%x: memref<?x24xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "24"], mlafix.access = "read"},
                     %k: memref<?x24xi32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(4 6)"], mlafix.access = "read"}, %i: i64) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %v = mlafix.load %x[%t] : memref<?x24xf32, strided<[?, 1], offset: ?>> -> !tile
    %w = mlafix.load %k[%t] : memref<?x24xi32, strided<[?, 1], offset: ?>> -> !groups
    // CHECK: mlafix.top_k %{{.*}} : tensor<24xf32, #mlafix.dim<24>> -> f32, f32, i32, i32
    %best:4 = mlafix.top_k %v : !tile -> f32, f32, i32, i32
    // CHECK: mlafix.top_k %{{.*}} : tensor<24xi32, #mlafix.dim<4 x 6>> -> tensor<4xi32, #mlafix.dim<4>>, tensor<4xi32, #mlafix.dim<4>>
    %first:2 = mlafix.top_k %w : !groups -> !each, !each
    %live = arith.cmpf ogt, %v, %v : !tile
    // CHECK: mlafix.reduce max %{{.*}} : tensor<24xi1, #mlafix.dim<24>>
    %any = mlafix.reduce max %live : tensor<24xi1, #mlafix.dim<24>>
    %wide = mlafix.splat %i : i64 -> tensor<24xi64, #mlafix.dim<24>>
    // CHECK: mlafix.reduce add %{{.*}} : tensor<24xi64, #mlafix.dim<24>>
    %sum = mlafix.reduce add %wide : tensor<24xi64, #mlafix.dim<24>>
  }
}

// -----

!tile = tensor<24xf32, #mlafix.dim<24>>
mlafix.kernel @k(%x: f32) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %v = mlafix.splat %x : f32 -> !tile
    // expected-error @below {{expected a result of 'i32', got 'i64'}}
    %best:2 = mlafix.top_k %v : !tile -> f32, i64
  }
}

// -----

!tile = tensor<2xf32, #mlafix.dim<2>>
mlafix.kernel @k(%x: f32) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %v = mlafix.splat %x : f32 -> !tile
    // expected-error @below {{expected a row of at least 3 elements, got 2}}
    %best:6 = mlafix.top_k %v : !tile -> f32, f32, f32, i32, i32, i32
  }
}

// -----

!tile = tensor<24xi64, #mlafix.dim<24>>
mlafix.kernel @k(%x: i64) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %v = mlafix.splat %x : i64 -> !tile
    // expected-error @below {{expected a row of f32 or i32, got 'i64'}}
    %best:2 = mlafix.top_k %v : !tile -> i64, i32
  }
}

// -----

!tile = tensor<24xf32, #mlafix.dim<4 x 6>>
mlafix.kernel @k(%x: f32) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %v = mlafix.splat %x : f32 -> !tile
    // expected-error @below {{expected only scalars, of the whole row, or only rows, with one element per group, got both}}
    %best:2 = mlafix.top_k %v : !tile -> f32, tensor<4xi32, #mlafix.dim<4>>
  }
}

// -----

mlafix.kernel @k(%x: i1) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %v = mlafix.splat %x : i1 -> tensor<24xi1, #mlafix.dim<24>>
    // expected-error @below {{expected a row of f32, i32 or i64, or of i1 for max or min, got 'i1'}}
    %sum = mlafix.reduce add %v : tensor<24xi1, #mlafix.dim<24>>
  }
}

// -----

mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"}) attributes {most = {b = 2}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %v = mlafix.load %x[] : memref<?xf32, strided<[1], offset: ?>> -> tensor<2xf32, #mlafix.dim<"b" most 2>>
    // expected-error @below {{expected a row of at least 3 elements, got 2}}
    %best:6 = mlafix.top_k %v : tensor<2xf32, #mlafix.dim<"b" most 2>> -> f32, f32, f32, i32, i32, i32
  }
}
