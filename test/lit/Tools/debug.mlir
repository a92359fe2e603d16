// --mlafix-debug prints notes of the named passes for developers of the compiler, in builds with assertions.
// REQUIRES: assertions
// RUN: %mlafix-opt %s --target=sm_90 --emit=mlir --mlafix-debug=mlafix-plan-kernel -o %t 2>&1 | FileCheck %s --implicit-check-not=mlafix-hoist-loads
// RUN: %mlafix-opt %s --target=sm_90 --emit=mlir -o %t 2>&1 | count 0

// CHECK: [mlafix-plan-kernel {{.*}}] copy_dense: #mlafix.plan<layout = <
!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @copy(%y: !rows {mlafix.dims = ["n", ""], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", ""], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> tensor<128xf32, #mlafix.dim<128>>
    mlafix.store %v, %y[%t] : tensor<128xf32, #mlafix.dim<128>>, !rows
  }
}
