// If rows are processed in loops over packs, mlafix.merge_loop becomes an scf.for that merges each chunk, with the
// accumulator in a buffer. If the plan has no such loops, mlafix.merge_loop stays, also where lane groups share it.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-spill-rows))" | FileCheck %s
// RUN: sed 's/, row_loops = yes//' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-spill-rows))" | FileCheck %s --check-prefix=SHORT
// RUN: sed 's/lanes = 16, packs = 4, pack = 4, rows = 8/lanes = 32, packs = 2, pack = 4, rows = 1, groups = 4/; s/, row_loops = yes//' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-spill-rows,mlafix-loop-over-packs,mlafix-rows-to-packs))" | FileCheck %s --check-prefix=GROUPS

!rows = memref<?x?x256xf32, strided<[?, ?, 1], offset: ?>>
!out = memref<?x256xf32, strided<[?, 1], offset: ?>>
!tile = tensor<256xf32, #mlafix.dim<256>>
module attributes {mlafix.target = "sm_90"} {
  // CHECK-LABEL: mlafix.kernel @running
  // CHECK: %[[BUFFER:.*]] = memref.alloca() : memref<16xf32>
  // CHECK: mlafix.store %{{.*}}, %[[BUFFER]][]
  // CHECK-NEXT: scf.for %[[I:.*]] = %c0 to %{{.*}} step %c4 iter_args(%[[MAX:.*]] = %{{.*}}, %[[SUM:.*]] = %{{.*}}) -> (f32, f32) {
  // CHECK-NEXT: %[[OLD:.*]] = mlafix.load %[[BUFFER]][]
  // CHECK-NEXT: %[[NEXT:.*]] = mlafix.load %x[%{{.*}}, %[[I]]]
  // CHECK: %[[MOST:.*]] = arith.maximumf %[[MAX]], %{{.*}} : f32
  // CHECK: math.exp2
  // CHECK: arith.select %{{.*}}, %{{.*}}, %[[OLD]] : tensor<256xf32
  // CHECK: arith.select %{{.*}}, %{{.*}}, %[[NEXT]] : tensor<256xf32
  // CHECK: %[[MERGED:.*]] = math.fma %{{.*}} : tensor<256xf32
  // CHECK: mlafix.store %[[MERGED]], %[[BUFFER]][]
  // CHECK-NEXT: scf.yield %[[MOST]], %{{.*}} : f32, f32
  // CHECK-NOT: mlafix.merge_loop
  // CHECK: mlafix.load %[[BUFFER]][]
  // SHORT-NOT: memref.alloca
  // SHORT: mlafix.merge_loop
  // GROUPS-NOT: memref.alloca
  // GROUPS: mlafix.merge_loop {{.*}} vector<4xf32>, vector<4xf32>
  mlafix.kernel @running(%out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 4, pack = 4, rows = 8>, row_loops = yes>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %n = memref.dim %out, %c0 : !out
    %k = memref.dim %x, %c1 : !rows
    mlafix.forall (%t) in (%n) {
      %none = mlafix.splat %zero : f32 -> !tile
      %all:3 = mlafix.merge_loop %i = %c0 to %k step 4 init(%zero, %one, %none) : f32, f32, !tile attributes {base = #mlafix.base<e>} {
        %row = mlafix.load %x[%t, %i] : !rows -> !tile
        mlafix.yield %zero, %one, %row : f32, f32, !tile
      }
      mlafix.store %all#2, %out[%t] : !tile, !out
    }
  }
}
