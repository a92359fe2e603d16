// Loads, and the arithmetic of their addresses, move before other arithmetic. A load stays after a store that may write
// what the load reads.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-hoist-loads))" | FileCheck %s
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "update"},
                 %i: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[1], offset: ?>>
  // CHECK: mlafix.forall (%[[T:.*]]) in
  mlafix.forall (%t) in (%n) {
    // CHECK-NEXT: %[[A:.*]] = memref.load %x[%[[T]]]
    // CHECK-NEXT: %[[C:.*]] = memref.load %x[%c0]
    // CHECK-NEXT: %[[J:.*]] = memref.load %i[%[[T]]]
    // CHECK-NEXT: %[[K:.*]] = arith.index_cast %[[J]]
    // CHECK-NEXT: %[[D:.*]] = memref.load %x[%[[K]]]
    // CHECK-NEXT: %[[B:.*]] = arith.addf %[[A]], %[[A]]
    %a = memref.load %x[%t] : memref<?xf32, strided<[1], offset: ?>>
    %b = arith.addf %a, %a : f32
    %c = memref.load %x[%c0] : memref<?xf32, strided<[1], offset: ?>>
    %j = memref.load %i[%t] : memref<?xi32, strided<[1], offset: ?>>
    %k = arith.index_cast %j : i32 to index
    %d = memref.load %x[%k] : memref<?xf32, strided<[1], offset: ?>>
    %e = arith.addf %c, %d : f32
    %f = arith.addf %b, %e : f32
    // CHECK: memref.store
    memref.store %f, %x[%t] : memref<?xf32, strided<[1], offset: ?>>
    // CHECK-NEXT: memref.load %x[%c1]
    %g = memref.load %x[%c1] : memref<?xf32, strided<[1], offset: ?>>
    memref.store %g, %x[%c0] : memref<?xf32, strided<[1], offset: ?>>
  }
}

// The first arithmetic computes an address. The loads come after it, masked loads last.
// CHECK-LABEL: @addresses
mlafix.kernel @addresses(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // CHECK: arith.muli
    // CHECK-NEXT: vector.load
    // CHECK-NEXT: arith.cmpi
    // CHECK-NEXT: vector.broadcast
    // CHECK-NEXT: vector.maskedload
    // CHECK-NEXT: arith.addf
    %at = arith.muli %t, %c8 : index
    %some = arith.cmpi ult, %t, %c8 : index
    %mask = vector.broadcast %some : i1 to vector<4xi1>
    %a = vector.maskedload %x[%at], %mask, %zero : memref<?xf32, strided<[1], offset: ?>>, vector<4xi1>, vector<4xf32> into vector<4xf32>
    %b = arith.addf %a, %a : vector<4xf32>
    %c = vector.load %x[%at] : memref<?xf32, strided<[1], offset: ?>>, vector<4xf32>
    %d = arith.addf %b, %c : vector<4xf32>
    vector.store %d, %x[%at] : memref<?xf32, strided<[1], offset: ?>>, vector<4xf32>
  }
}

// A load moves across a branch that only loads, and not across one that stores.
// CHECK-LABEL: @branches
mlafix.kernel @branches(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "update"}, %p: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // CHECK: memref.load %x[%c0]
    // CHECK-NEXT: scf.if
    %a = scf.if %p -> (f32) {
      %read = memref.load %x[%t] : memref<?xf32, strided<[1], offset: ?>>
      scf.yield %read : f32
    } else {
      %none = arith.constant 0.0 : f32
      scf.yield %none : f32
    }
    %b = memref.load %x[%c0] : memref<?xf32, strided<[1], offset: ?>>
    %c = arith.addf %a, %b : f32
    // CHECK: scf.if
    // CHECK: memref.store
    scf.if %p {
      memref.store %c, %x[%t] : memref<?xf32, strided<[1], offset: ?>>
    }
    // CHECK: memref.load %x[%c1]
    %d = memref.load %x[%c1] : memref<?xf32, strided<[1], offset: ?>>
    memref.store %d, %x[%t] : memref<?xf32, strided<[1], offset: ?>>
  }
}

// A load moves across an exchange between lanes, so the rows of a loop's next iterations are loaded while the row of
// the first is reduced.
// CHECK-LABEL: @exchanges
mlafix.kernel @exchanges(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "update"}, %mask: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : i32
  %c31 = arith.constant 31 : i32
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // CHECK: memref.load
    // CHECK-NEXT: memref.load
    // CHECK-NEXT: nvvm.shfl.sync
    %a = memref.load %x[%t] : memref<?xf32, strided<[1], offset: ?>>
    %b = nvvm.shfl.sync bfly %mask, %a, %c1, %c31 : f32 -> f32
    %c = memref.load %x[%c0] : memref<?xf32, strided<[1], offset: ?>>
    %d = arith.addf %b, %c : f32
    memref.store %d, %x[%t] : memref<?xf32, strided<[1], offset: ?>>
  }
}

// If the pass runs before rows become packs, a scalar load without a predicate moves before the reduction of a row, but
// not before a store. Scalar loads with a predicate and loads of rows stay.
// CHECK-LABEL: @tiles
mlafix.kernel @tiles(%x: memref<?x64xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                     %i: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"},
                     %y: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32, strided<[1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // CHECK: %[[ROW:.*]] = mlafix.load %x[%[[T:.*]]] :
    // CHECK-NEXT: %[[J:.*]] = mlafix.load %i[%[[T]]] : {{.*}} -> i32
    // CHECK-NEXT: %[[MOST:.*]] = mlafix.reduce max %[[ROW]]
    // CHECK: mlafix.load %x[%c0] :
    // CHECK: mlafix.load %i[%c0] if
    // CHECK: mlafix.store
    // CHECK-NEXT: mlafix.load %y
    %row = mlafix.load %x[%t] : memref<?x64xf32, strided<[?, 1], offset: ?>> -> tensor<64xf32, #mlafix.dim<64>>
    %most = mlafix.reduce max %row : tensor<64xf32, #mlafix.dim<64>>
    %j = mlafix.load %i[%t] : memref<?xi32, strided<[1], offset: ?>> -> i32
    %first = mlafix.load %x[%c0] : memref<?x64xf32, strided<[?, 1], offset: ?>> -> tensor<64xf32, #mlafix.dim<64>>
    %sum = mlafix.reduce add %first : tensor<64xf32, #mlafix.dim<64>>
    %isMore = arith.cmpf ogt, %most, %sum : f32
    %k = mlafix.load %i[%c0] if %isMore : memref<?xi32, strided<[1], offset: ?>> -> i32
    %both = arith.addi %j, %k : i32
    %float = arith.sitofp %both : i32 to f32
    mlafix.store %float, %y[%t] : f32, memref<?xf32, strided<[1], offset: ?>>
    %again = mlafix.load %y[%c0] : memref<?xf32, strided<[1], offset: ?>> -> f32
    mlafix.store %again, %y[%t] : f32, memref<?xf32, strided<[1], offset: ?>>
  }
}
