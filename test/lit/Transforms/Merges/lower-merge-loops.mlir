// A merge loop over packs becomes a loop over chunks. If lane groups share a row, each group leaves its chunk in shared
// memory, and the first group merges the chunks.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-merge-loops))" | FileCheck %s

!col = memref<?xf32, strided<[1], offset: ?>>
// CHECK-LABEL: mlafix.kernel @alone
mlafix.kernel @alone(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %k: index, %m: f32)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1>>} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %zeros = arith.constant dense<0.0> : vector<4xf32>
    // CHECK: %[[STEP:.*]] = arith.constant 4 : index
    // CHECK: scf.for %{{.*}} = %c0 to %k step %[[STEP]] iter_args
    // CHECK-NOT: scf.if
    // CHECK: arith.maximumf
    // CHECK: math.exp2
    // CHECK: scf.yield %{{.*}} : f32, f32, vector<4xf32>
    // CHECK-NOT: mlafix.merge_loop
    %all:3 = mlafix.merge_loop %i = %c0 to %k step 4 init(%m, %m, %zeros) : f32, f32, vector<4xf32> attributes {base = #mlafix.base<2>} {
      mlafix.yield %m, %m, %zeros : f32, f32, vector<4xf32>
    }
  }
}

// CHECK-LABEL: mlafix.kernel @shared
mlafix.kernel @shared(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %k: index, %m: f32, %g: i32, %gs: i32, %gt: i32, %me: i32)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, collected_chunks = 2, added_chunks = 8>} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %zeros = arith.constant dense<0.0> : vector<4xf32>
    mlafix_thread.row groups(%g, %gs, %gt, %me) {
      // CHECK: %[[SHARED:.*]] = arith.cmpi ugt, %gs
      // CHECK: %[[STRIDE:.*]] = arith.muli
      // CHECK: scf.for %{{.*}} = %c0 to %k step %[[STRIDE]]
      // The first chunk needs no wait for readers of an earlier chunk.
      // CHECK: scf.if %[[SHARED]]
      // CHECK: %[[LATER:.*]] = arith.cmpi ne
      // CHECK-NEXT: scf.if %[[LATER]]
      // CHECK-NEXT: nvvm.barrier
      // CHECK-COUNT-2: memref.store {{.*}} : memref<3072xf32, #gpu.address_space<workgroup>>
      // CHECK: vector.store {{.*}} {alignment = 16 : i64} : memref<3072xf32, #gpu.address_space<workgroup>>
      // CHECK: nvvm.barrier
      // CHECK: scf.for
      // CHECK-COUNT-2: vector.load {{.*}} : memref<3072xf32, #gpu.address_space<workgroup>>
      %all:3 = mlafix.merge_loop %i = %c0 to %k step 4 init(%m, %m, %zeros) : f32, f32, vector<4xf32> attributes {base = #mlafix.base<2>} {
        mlafix.yield %m, %m, %zeros : f32, f32, vector<4xf32>
      }
    }
  }
}

// A merge loop of one f32 finds the largest number of all groups. The lanes of a group share the chunks of the group,
// and combine their results in an element of shared memory that starts with -inf. If there is only one group, its lanes
// exchange their results instead.
// CHECK-LABEL: mlafix.kernel @largest
mlafix.kernel @largest(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %k: index, %m: f32, %g: i32, %gs: i32, %gt: i32, %me: i32)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, collected_chunks = 2, added_chunks = 8>} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !col
  mlafix.forall (%t) in (%n) {
    // CHECK: memref.alloca() : memref<64xi32, #gpu.address_space<workgroup>>
    // CHECK: scf.if
    // CHECK: scf.if
    // CHECK: memref.store
    // CHECK: nvvm.barrier
    // CHECK: nvvm.griddepcontrol
    nvvm.griddepcontrol wait
    mlafix_thread.row groups(%g, %gs, %gt, %me) {
      // CHECK: %[[SHARED:.*]] = arith.cmpi ugt, %gs
      // The initial value may be the result of an earlier loop, which only the first group has. The other groups begin
      // with -inf.
      // CHECK: arith.cmpf uno, %m, %m
      // CHECK: arith.select
      // CHECK: %[[BEGIN:.*]] = arith.select
      // CHECK: %[[OWN:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[BEGIN]]) -> (f32)
      // CHECK: arith.maximumf
      // CHECK: scf.if %[[SHARED]] -> (f32)
      // CHECK: scf.if
      // CHECK: arith.bitcast %[[OWN]] : f32 to i32
      // CHECK: memref.atomic_rmw maxs
      // CHECK: nvvm.barrier
      // CHECK: memref.load
      // CHECK: arith.bitcast %{{.*}} : i32 to f32
      // CHECK: } else {
      // CHECK-COUNT-5: nvvm.shfl.sync bfly
      %most = mlafix.merge_loop %i = %c0 to %k step 4 init(%m) : f32 {
        mlafix.yield %m : f32
      }
      // The weighted states are added. All groups have the maximum, so it is not stored in shared memory.
      // CHECK: %[[SEVERAL:.*]] = arith.cmpi ugt, %gs
      // CHECK: scf.if %[[SEVERAL]]
      // CHECK: memref.store {{.*}} : memref<2560xf32, #gpu.address_space<workgroup>>
      // CHECK: vector.store {{.*}} : memref<2560xf32, #gpu.address_space<workgroup>>
      // CHECK-NOT: math.exp2
      // CHECK: nvvm.barrier
      // CHECK: scf.for
      // CHECK-COUNT-2: vector.load {{.*}} : memref<2560xf32, #gpu.address_space<workgroup>>
      // CHECK-NOT: math.exp2
      // CHECK: arith.addf %{{.*}} : vector<4xf32>
      // CHECK: loop_annotation
      %zeros = arith.constant dense<-0.0> : vector<4xf32>
      %all:3 = mlafix.merge_loop to_first %i = %c0 to %k step 4 init(%most, %m, %zeros) : f32, f32, vector<4xf32> attributes {base = #mlafix.base<2>} {
        mlafix.yield %most, %m, %zeros : f32, f32, vector<4xf32>
      }
    }
  }
}

// -----

!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>
mlafix.kernel @rows(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %k: index, %m: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %zeros = arith.constant dense<0.0> : !tile
    // expected-error @below {{expected a state of packs, got one that mlafix-rows-to-packs has not seen}}
    %all:3 = mlafix.merge_loop %i = %c0 to %k step 4 init(%m, %m, %zeros) : f32, f32, !tile attributes {base = #mlafix.base<2>} {
      mlafix.yield %m, %m, %zeros : f32, f32, !tile
    }
  }
}
