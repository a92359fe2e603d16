// A CPU runs one variant, a lane per row, sixteen floats at once.
// RUN: %mlafix-opt %s --split-input-file --pass-pipeline="builtin.module(mlafix-plan-layout{target=x86-64-v3})" | FileCheck %s
// CHECK-NOT: _fast
// CHECK: @copy_any
// CHECK-SAME: guards = [], layout = #mlafix.layout<lanes = 1, packs = 6, pack = 16, rows = 1>
// CHECK-NOT: mlafix.kernel
mlafix.kernel @copy(
    %out: memref<?x16x96xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: memref<?x16x96xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?x16x96xbf16, strided<[?, ?, 1], offset: ?>>
  %H = memref.dim %out, %c1 : memref<?x16x96xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : memref<?x16x96xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<96xf32, #mlafix.dim<96>>
    mlafix.store %v, %out[%t, %h] : tensor<96xf32, #mlafix.dim<96>>, memref<?x16x96xbf16, strided<[?, ?, 1], offset: ?>>
  }
}
