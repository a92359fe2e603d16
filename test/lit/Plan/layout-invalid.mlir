// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90})" 2>&1 | FileCheck %s
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel)" 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-distribute))" 2>&1 | FileCheck %s --check-prefix=DISTRIBUTE
// TARGET: error: expected a target to plan kernels for, got none
// DISTRIBUTE: error: expected a kernel with a plan, got one that mlafix-plan-kernel has not seen
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // CHECK: [[@LINE+1]]:10: error: expected a size for dim "D", which is the length of a row, got no binding of it
    %v = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
    mlafix.store %v, %x[%t] : tensor<?xf32, #mlafix.dim<"D">>, memref<?x?xf32, strided<[?, 1], offset: ?>>
  }
}
