// A row becomes one vector per pack of a lane. A reduction exchanges values between lanes. One lane stores scalars.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-rows-to-packs))" | FileCheck %s

!rows = memref<?x128xbf16, strided<[?, 1], offset: ?>>
!col = memref<?xf32, strided<[1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: mlafix.kernel @sum
  mlafix.kernel @sum(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %p: i1)
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    // CHECK: mlafix_thread.row lane %[[LANE:.*]] mask %[[MASK:.*]] {
    mlafix.forall (%t) in (%n) {
      // CHECK-COUNT-2: vector.maskedload %x{{.*}} into vector<4xbf16>
      %v = mlafix.load %x[%t] if %p : !rows -> !tile
      // CHECK-COUNT-2: arith.addf %{{.*}} : vector<4xf32>
      %w = arith.addf %v, %v : !tile
      // After the first exchange, each lane has one of two packs. Three more exchanges give the pack's sum, and the
      // last one the sum of both packs.
      // CHECK: %[[BIT:.*]] = arith.cmpi ne
      // CHECK: %[[MINE:.*]] = arith.select %[[BIT]], %[[UPPER:.*]], %[[LOWER:.*]] : f32
      // CHECK: %[[OTHER:.*]] = arith.select %[[BIT]], %[[LOWER]], %[[UPPER]] : f32
      // CHECK: %[[GOT:.*]] = nvvm.shfl.sync bfly %[[MASK]], %[[OTHER]], %c1_i32
      // CHECK-NEXT: arith.addf %[[MINE]], %[[GOT]]
      // CHECK-COUNT-3: nvvm.shfl.sync bfly %[[MASK]]
      // CHECK: nvvm.shfl.sync bfly %[[MASK]], %{{.*}}, %c1_i32
      // CHECK-NEXT: arith.addf
      // CHECK-NOT: nvvm.shfl
      %s = mlafix.reduce add %w : !tile
      // CHECK-COUNT-2: vector.store %{{.*}}, %x{{.*}} vector<4xbf16>
      mlafix.store %w, %x[%t] : !tile, !rows
      // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[LANE]]
      // CHECK-NEXT: scf.if %[[FIRST]] {
      // CHECK-NEXT: memref.store %{{.*}}, %y
      mlafix.store %s, %y[%t] : f32, !col
    }
  }
}

// -----

// The accumulator of a merge loop consists of the packs of a lane.
!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: mlafix.kernel @merge
  mlafix.kernel @merge(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %k: index)
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %low = arith.constant 0xFF800000 : f32
      %one = arith.constant 1.0 : f32
      %zeros = arith.constant dense<0.0> : !tile
      // CHECK: mlafix.merge_loop {{.*}} : f32, f32, vector<4xf32>, vector<4xf32>
      // CHECK: mlafix.yield {{.*}} : f32, f32, vector<4xf32>, vector<4xf32>
      %m, %s, %acc = mlafix.merge_loop %i = %c0 to %k step 1 init(%low, %one, %zeros) : f32, f32, !tile attributes {base = #mlafix.base<e>} {
        %v = mlafix.load %x[%i] : !rows -> !tile
        mlafix.yield %one, %one, %v : f32, f32, !tile
      }
      mlafix.store %acc, %x[%t] : !tile, !rows
    }
  }
}

// -----

// The pack of an iota is its first index plus the positions in the pack.
!rows = memref<?x128xi32, strided<[?, 1], offset: ?>>
!tile = tensor<128xi32, #mlafix.dim<128>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: mlafix.kernel @iota
  mlafix.kernel @iota(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      // CHECK-COUNT-2: arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
      // CHECK-NOT: mlafix.iota
      %i = mlafix.iota : !tile
      // CHECK-COUNT-2: vector.store
      mlafix.store %i, %x[%t] : !tile, !rows
    }
  }
}

// -----

// If the bound of a comparison is at the border of packs, a pack's first index decides for all its elements.
!rows = memref<?x128xi32, strided<[?, 1], offset: ?>>
!tile = tensor<128xi32, #mlafix.dim<128>>
!bits = tensor<128xi1, #mlafix.dim<128>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: mlafix.kernel @bounds
  mlafix.kernel @bounds(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %c100 = arith.constant 100 : i32
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %i = mlafix.iota : !tile
      %below = mlafix.splat %c100 : i32 -> !tile
      %last = arith.constant dense<63> : !tile
      %within = arith.constant dense<66> : !tile
      // CHECK: %[[ONE:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : i32
      // CHECK-NEXT: %[[A:.*]] = vector.broadcast %[[ONE]] : i1 to vector<4xi1>
      %a = arith.cmpi slt, %i, %below : !tile
      // CHECK: %[[OTHER:.*]] = arith.cmpi sgt, %{{.*}}, %{{.*}} : i32
      // CHECK-NEXT: %[[B:.*]] = vector.broadcast %[[OTHER]] : i1 to vector<4xi1>
      %b = arith.cmpi sgt, %i, %last : !tile
      // CHECK: arith.cmpi slt, %{{.*}}, %{{.*}} : vector<4xi32>
      %c = arith.cmpi slt, %i, %within : !tile
      %ab = arith.andi %a, %b : !bits
      %abc = arith.andi %ab, %c : !bits
      %zero = arith.constant dense<0> : !tile
      %v = arith.select %abc, %i, %zero : !bits, !tile
      mlafix.store %v, %x[%t] : !tile, !rows
    }
  }
}

// -----

// A scan proceeds by the bits of an element's index in the pack, then of the lane's number, then of the pack's number.
!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: mlafix.kernel @scan
  mlafix.kernel @scan(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    // CHECK: mlafix_thread.row lane %[[LANE:.*]] mask %[[MASK:.*]] {
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : !rows -> !tile
      // CHECK: %[[NONE:.*]] = arith.constant dense<-0.000000e+00> : vector<4xf32>
      // CHECK: vector.shuffle %{{.*}}, %[[NONE]] [4, 0, 6, 2] : vector<4xf32>
      // CHECK: vector.shuffle %{{.*}}, %[[NONE]] [4, 5, 1, 1] : vector<4xf32>
      // CHECK-NEXT: %[[FIRST:.*]] = arith.addf
      // CHECK-NEXT: vector.extract %[[FIRST]][3]
      // CHECK-COUNT-8: nvvm.shfl.sync bfly %[[MASK]]
      // CHECK-NOT: nvvm.shfl
      // The second pack of a lane adds the total of all first packs.
      // CHECK: %[[TOTAL:.*]] = arith.addf %{{.*}} : f32
      // CHECK: vector.broadcast %{{.*}} : f32 to vector<4xf32>
      // CHECK-NOT: mlafix.scan
      // CHECK-COUNT-2: vector.store
      %s = mlafix.scan add %v : !tile
      mlafix.store %s, %x[%t] : !tile, !rows
    }
  }
}
