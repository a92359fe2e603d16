// The scalars of four rows along the outer extent are computed at once, as vectors, for each index of a strip of the
// inner extent. Then all rows of the strip are moved. Rows that do not fill a batch are processed one by one. The
// target limits the number of indices in a strip, and the size of the buffers for the scalars of a strip.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid))" | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: sed 's/mlafix.target = "x86-64-v3"/&, mlafix.machine = ["stripRows=8", "rangeRows=64"]/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid))" | FileCheck %s --check-prefixes=CHECK,EIGHT
// RUN: sed 's/mlafix.target = "x86-64-v3"/&, mlafix.machine = ["batchBytes=128"]/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid))" | FileCheck %s --check-prefixes=CHECK,BYTES

!rows = memref<?x48x32xf32, strided<[?, ?, 1], offset: ?>>
!scalars = memref<48x?xf32, strided<[?, ?], offset: ?>>
!tile = tensor<32xf32, #mlafix.dim<32>>
module attributes {mlafix.target = "x86-64-v3"} {
  // CHECK-LABEL: mlafix.kernel @scale
  // CHECK-SAME: %begin: index, %end: index
  // ALL-SAME: rows_per_block = 192
  // EIGHT-SAME: rows_per_block = 1
  mlafix.kernel @scale(%out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
                       %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
                       %s: !scalars {mlafix.dims = ["H", "n"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 2, pack = 16, rows = 4>>} {
    %c0 = arith.constant 0 : index
    %c48 = arith.constant 48 : index
    %n = memref.dim %out, %c0 : !rows
    // ALL: memref.alloca() : memref<192xf32>
    // EIGHT: memref.alloca() : memref<32xf32>
    // BYTES: memref.alloca() : memref<24xf32>
    // CHECK: scf.for
    // CHECK: scf.for
    // CHECK: scf.for
    // CHECK-COUNT-4: mlafix.load %s
    // CHECK: math.exp2 %{{.*}} : vector<4xf32>
    // CHECK-COUNT-4: memref.store
    // CHECK: scf.for
    // CHECK: scf.for
    // CHECK: memref.load
    // CHECK: mlafix.load %x
    // CHECK: mlafix.store %{{.*}}, %out
    // CHECK: scf.for %{{.*}} = %{{.*}} to %end
    // CHECK: math.exp2 %{{.*}} : f32
    mlafix.forall (%t, %h) in (%n, %c48) {
      %f = mlafix.load %s[%h, %t] : !scalars -> f32
      %e = math.exp2 %f : f32
      %w = mlafix.splat %e : f32 -> !tile
      %v = mlafix.load %x[%t, %h] : !rows -> !tile
      %m = arith.mulf %v, %w : !tile
      mlafix.store %m, %out[%t, %h] : !tile, !rows
    }
  }
}
