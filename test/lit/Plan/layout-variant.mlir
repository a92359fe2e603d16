// The option `variant` keeps one variant of each kernel, although the name of one kernel here (copy) is a prefix of the
// names of the other kernel's variants (copy_list_dense).
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 variant=dense})" | FileCheck %s

!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>

// CHECK: mlafix.kernel @copy_dense(
// CHECK: mlafix.kernel @copy_list_dense(
// CHECK-NOT: mlafix.kernel
mlafix.kernel @copy(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> tensor<64xf32, #mlafix.dim<64>>
    mlafix.store %v, %out[%t] : tensor<64xf32, #mlafix.dim<64>>, !rows
  }
}
mlafix.kernel @copy_list(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                         %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> tensor<64xf32, #mlafix.dim<64>>
    mlafix.store %v, %out[%t] : tensor<64xf32, #mlafix.dim<64>>, !rows
  }
}
