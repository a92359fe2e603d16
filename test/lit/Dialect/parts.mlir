// Accesses to groups and members of rows along a product are printed and parsed without a change. Their types follow
// the bindings of names.
// RUN: %mlafix-opt %s | %mlafix-opt | FileCheck %s
// RUN: %mlafix-opt %s --mlir-print-op-generic | %mlafix-opt | FileCheck %s
// RUN: %mlafix-opt %s --kernel=k --specialize=G=2,K=64 --emit=specialized | FileCheck %s --check-prefix=BOUND

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!group = tensor<?xf32, #mlafix.dim<"K">>
!member = tensor<?xf32, #mlafix.dim<"G">>

// CHECK-LABEL: mlafix.kernel @k(
// BOUND-LABEL: mlafix.kernel @k(
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "(G K)"], mlafix.access = "update"}, %k: index {mlafix.at_most = "n"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %p = arith.cmpi ult, %t, %k : index
    // CHECK: mlafix.load %x[%[[T:.*]]] group %[[C1:.*]] if %{{.*}} else %{{.*}} : {{.*}} -> tensor<?xf32, #mlafix.dim<"K">>
    // BOUND: mlafix.load %x[%{{.*}}] group %{{.*}} : memref<?x128xbf16, {{.*}} -> tensor<64xf32, #mlafix.dim<64>>
    %g = mlafix.load %x[%t] group %c1 if %p else %zero : !rows -> !group
    // CHECK: mlafix.load %x[%[[T]]] member %[[C1]] : {{.*}} -> tensor<?xf32, #mlafix.dim<"G">>
    // BOUND: mlafix.load %x[%{{.*}}] member %{{.*}} -> tensor<2xf32, #mlafix.dim<2>>
    %m = mlafix.load %x[%t] member %c1 : !rows -> !member
    // CHECK: mlafix.load %x[%[[T]]] group %[[C1]] member %[[C0:.*]] : {{.*}} -> f32
    %e = mlafix.load %x[%t] group %c1 member %c0 : !rows -> f32
    // CHECK: mlafix.store %{{.*}}, %x[%[[T]]] group %[[C0]] if %{{.*}} : tensor
    mlafix.store %g, %x[%t] group %c0 if %p : !group, !rows
    // CHECK: mlafix.store %{{.*}}, %x[%[[T]]] member %[[C0]] : tensor
    mlafix.store %m, %x[%t] member %c0 : !member, !rows
    // CHECK: mlafix.store %{{.*}}, %x[%[[T]]] group %[[C0]] member %[[C1]] : f32
    mlafix.store %e, %x[%t] group %c0 member %c1 : f32, !rows
  }
}

// CHECK-LABEL: mlafix.kernel @joined(
mlafix.kernel @joined(%x: memref<?x128xbf16, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(64 2)"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64xf32, #mlafix.dim<64>>
  %n = memref.dim %x, %c0 : memref<?x128xbf16, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // CHECK: mlafix.store_members(%[[Z:.*]], %[[Z]]), %x[%{{.*}}] : tensor<64xf32, #mlafix.dim<64>>, memref<?x128xbf16
    mlafix.store_members (%zero, %zero), %x[%t] : tensor<64xf32, #mlafix.dim<64>>, memref<?x128xbf16, strided<[?, 1], offset: ?>>
  }
}
