// The next rows of a batch are prefetched, under the predicate of the current row, if the tensor is too large for the
// caches.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3 variant=streamed},mlafix.kernel(mlafix-lower-grid,mlafix-prefetch-rows))" | FileCheck %s --check-prefixes=CHECK,NEAR
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3 variant=streamed machine=aheadBytes=4096},mlafix.kernel(mlafix-lower-grid,mlafix-prefetch-rows))" | FileCheck %s --check-prefixes=CHECK,FAR
// Other loops, and tensors that may fit into a cache, are unchanged.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3 variant=streamed})" | sed 's/, rows = 16>/, rows = 1>/' | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-prefetch-rows))" | FileCheck %s --check-prefix=NONE
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3 variant=any},mlafix.kernel(mlafix-lower-grid,mlafix-prefetch-rows))" | FileCheck %s --check-prefix=NONE
// NONE-LABEL: mlafix.kernel @scale
// NONE-NOT: memref.prefetch

!rows = memref<?x48x32xbf16, strided<[?, ?, 1], offset: ?>>
!scalars = memref<48x?xf32, strided<[?, ?], offset: ?>>
!tile = tensor<32xf32, #mlafix.dim<32>>
// A row has 64 bytes, so 2 KB are 32 rows, and 4 KB are 64 rows.
// CHECK-LABEL: mlafix.kernel @scale
// NEAR: %[[COUNT:.*]] = arith.constant 32 : index
// FAR: %[[COUNT:.*]] = arith.constant 64 : index
// CHECK: %[[AHEAD:.*]] = arith.addi %{{.*}}, %[[COUNT]]
// CHECK: %[[H:.*]] = arith.remui %[[AHEAD]]
// CHECK: %[[T:.*]] = arith.divui %[[AHEAD]]
// CHECK: %[[TOKEN:.*]] = arith.addi %[[T]]
// CHECK: scf.if
// CHECK: memref.prefetch %x[%[[TOKEN]], %[[H]], %{{.*}}], read, locality<3>, data
// CHECK-NOT: memref.prefetch
// CHECK: mlafix.load %x
// CHECK-NOT: memref.prefetch
mlafix.kernel @scale(%out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
                     %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
                     %s: !scalars {mlafix.dims = ["H", "n"], mlafix.access = "read"}, %limit: index) {
  %c0 = arith.constant 0 : index
  %c48 = arith.constant 48 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %c48) {
    %in = arith.cmpi slt, %t, %limit : index
    %f = mlafix.load %s[%h, %t] : !scalars -> f32
    %e = math.exp2 %f : f32
    %w = mlafix.splat %e : f32 -> !tile
    %v = mlafix.load %x[%t, %h] if %in : !rows -> !tile
    %m = arith.mulf %v, %w : !tile
    mlafix.store %m, %out[%t, %h] : !tile, !rows
  }
}
