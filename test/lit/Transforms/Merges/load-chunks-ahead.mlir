// In a merge loop that lane groups share, the next chunk is loaded before the branch that merges the current chunk. The
// first chunk is loaded before the loop.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-merge-loops,canonicalize,cse))" | FileCheck %s

// The pass compares the indices of the lses in both loops. It compares a value that an index uses several times only
// once.
// RUN: %python %S/../Inputs/powers.py > %t.mlir
// RUN: %mlafix-opt %t.mlir --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-merge-loops,canonicalize,cse))" | FileCheck %s --check-prefix=POWERS
// POWERS-LABEL: mlafix.kernel @powers(
// POWERS-COUNT-3: memref.atomic_rmw maxs

!col = memref<?xf32, strided<[1], offset: ?>>
// CHECK-LABEL: mlafix.kernel @ahead(
mlafix.kernel @ahead(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"},
    %n: index, %m: f32, %g: i32, %gs: i32, %gt: i32, %me: i32)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%n) {
    mlafix_thread.row groups(%g, %gs, %gt, %me) {
      // The first chunk is loaded without masks if it is complete.
      // CHECK: %[[FIRST:.*]]:2 = scf.if %{{.*}} -> (vector<4xf32>, vector<4xf32>)
      // CHECK-NEXT: vector.load %x
      // CHECK-NEXT: vector.load %x
      // CHECK: else
      // CHECK-COUNT-2: vector.maskedload %x
      // CHECK: scf.for %{{.*}} = %c0 to %n step %{{.*}} iter_args({{.*}}, %[[V:[^ ]*]] = %[[FIRST]]#0, %[[W:[^ ]*]] = %[[FIRST]]#1, %[[NEXT:[^ ]*]] =
      // CHECK-NOT: vector.maskedload
      // CHECK: arith.addf %[[V]], %[[W]]
      // In the last iteration, no chunk follows, so all loads for the next chunk are masked off.
      // CHECK: %[[IS_ANY:.*]] = arith.cmpi slt, %[[NEXT]], %n : index
      // CHECK: %[[AHEAD:.*]]:2 = scf.if %[[IS_ANY]] -> (vector<4xf32>, vector<4xf32>)
      // CHECK-COUNT-2: vector.load %x
      // CHECK-COUNT-2: vector.maskedload %x
      // CHECK: %[[MERGED:.*]]:3 = scf.if %{{.*}} -> (f32, f32, vector<4xf32>)
      // CHECK-NEXT: nvvm.barrier
      // CHECK: scf.yield %[[MERGED]]#0, %[[MERGED]]#1, %[[MERGED]]#2, %[[AHEAD]]#0, %[[AHEAD]]#1, %
      %all:3 = mlafix.merge_loop %k = %c0 to %n step 4 init(%m, %m, %zero) : f32, f32, vector<4xf32> attributes {base = #mlafix.base<2>} {
        %exists = arith.cmpi slt, %k, %n : index
        %mask = vector.broadcast %exists : i1 to vector<4xi1>
        %v = vector.maskedload %x[%k], %mask, %zero : !col, vector<4xi1>, vector<4xf32> into vector<4xf32>
        %next = arith.addi %k, %c1 : index
        %exists1 = arith.cmpi slt, %next, %n : index
        %mask1 = vector.broadcast %exists1 : i1 to vector<4xi1>
        %w = vector.maskedload %x[%next], %mask1, %zero : !col, vector<4xi1>, vector<4xf32> into vector<4xf32>
        %sum = arith.addf %v, %w : vector<4xf32>
        mlafix.yield %m, %m, %sum : f32, f32, vector<4xf32>
      }
    }
  }
}

// The loads would need too many registers, so nothing changes.
// CHECK-LABEL: mlafix.kernel @many(
mlafix.kernel @many(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"},
    %n: index, %m: f32, %g: i32, %gs: i32, %gt: i32, %me: i32)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<40xf32>
  mlafix.forall (%t) in (%n) {
    mlafix_thread.row groups(%g, %gs, %gt, %me) {
      // CHECK-NOT: {{vector.load|vector.maskedload}} %x
      // CHECK: scf.for
      // CHECK: vector.maskedload %x
      // CHECK-NOT: {{vector.load|vector.maskedload}} %x
      %all:3 = mlafix.merge_loop %k = %c0 to %n step 4 init(%m, %m, %zero) : f32, f32, vector<40xf32> attributes {base = #mlafix.base<2>} {
        %exists = arith.cmpi slt, %k, %n : index
        %mask = vector.broadcast %exists : i1 to vector<40xi1>
        %v = vector.maskedload %x[%k], %mask, %zero : !col, vector<40xi1>, vector<40xf32> into vector<40xf32>
        mlafix.yield %m, %m, %v : f32, f32, vector<40xf32>
      }
    }
  }
}

// The loads depend on loaded values, so nothing changes.
// CHECK-LABEL: mlafix.kernel @indexed(
mlafix.kernel @indexed(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %places: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"},
    %n: index, %m: f32, %g: i32, %gs: i32, %gt: i32, %me: i32)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  mlafix.forall (%t) in (%n) {
    mlafix_thread.row groups(%g, %gs, %gt, %me) {
      // CHECK-NOT: {{vector.load|vector.maskedload}} %x
      // CHECK: scf.for
      // CHECK: vector.maskedload %x
      // CHECK-NOT: {{vector.load|vector.maskedload}} %x
      %all:3 = mlafix.merge_loop %k = %c0 to %n step 4 init(%m, %m, %zero) : f32, f32, vector<4xf32> attributes {base = #mlafix.base<2>} {
        %exists = arith.cmpi slt, %k, %n : index
        %mask = vector.broadcast %exists : i1 to vector<4xi1>
        %i = memref.load %places[%k] : memref<?xi32, strided<[1], offset: ?>>
        %at = arith.index_cast %i : i32 to index
        %v = vector.maskedload %x[%at], %mask, %zero : !col, vector<4xi1>, vector<4xf32> into vector<4xf32>
        mlafix.yield %m, %m, %v : f32, f32, vector<4xf32>
      }
    }
  }
}

!half = memref<?xbf16, strided<[1], offset: ?>>
// Only f32 loads with the widest access have the evict-first policy, not single elements or bf16.
// CHECK-LABEL: mlafix.kernel @streamed(
mlafix.kernel @streamed(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %l: !col {mlafix.dims = ["n"], mlafix.access = "read"},
    %b: !half {mlafix.dims = ["n"], mlafix.access = "read"},
    %n: index, %m: f32, %g: i32, %gs: i32, %gt: i32, %me: i32)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144, streamed_bytes = 16>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %one = arith.constant dense<0.0> : vector<1xf32>
  %none = arith.constant dense<0.0> : vector<8xbf16>
  mlafix.forall (%t) in (%n) {
    mlafix_thread.row groups(%g, %gs, %gt, %me) {
      // CHECK: scf.if
      // CHECK-NEXT: vector.load %x{{.*}} {nontemporal = true} : {{.*}}, vector<4xf32>
      // CHECK-NEXT: vector.load %l{{[^ ]*}} : {{.*}}, vector<1xf32>
      // CHECK-NEXT: vector.load %b{{[^ ]*}} : {{.*}}, vector<8xbf16>
      // CHECK: scf.for
      // CHECK: vector.load %x{{.*}} {nontemporal = true} : {{.*}}, vector<4xf32>
      %all:3 = mlafix.merge_loop %k = %c0 to %n step 4 init(%m, %m, %zero) : f32, f32, vector<4xf32> attributes {base = #mlafix.base<2>} {
        %exists = arith.cmpi slt, %k, %n : index
        %mask = vector.broadcast %exists : i1 to vector<4xi1>
        %mask1 = vector.broadcast %exists : i1 to vector<1xi1>
        %mask8 = vector.broadcast %exists : i1 to vector<8xi1>
        %v = vector.maskedload %x[%k], %mask, %zero : !col, vector<4xi1>, vector<4xf32> into vector<4xf32>
        %w = vector.maskedload %l[%k], %mask1, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
        %h = vector.maskedload %b[%k], %mask8, %none : !half, vector<8xi1>, vector<8xbf16> into vector<8xbf16>
        %first = vector.extract %w[0] : f32 from vector<1xf32>
        %halves = arith.extf %h : vector<8xbf16> to vector<8xf32>
        %sum = vector.reduction <add>, %halves, %first : vector<8xf32> into f32
        mlafix.yield %m, %sum, %v : f32, f32, vector<4xf32>
      }
    }
  }
}

// The first chunk is loaded before the loop that finds the largest lse, in which groups wait for each other. The first
// lses are loaded before the chunk. If the second loop does not weigh its states relative to the result of the first
// loop (no `to_first`), its first chunk is loaded after the first loop.
// RUN: sed 's/merge_loop to_first/merge_loop/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-merge-loops,canonicalize,cse))" | FileCheck %s --check-prefix=OTHER
// CHECK-LABEL: mlafix.kernel @largest(
// OTHER-LABEL: mlafix.kernel @largest(
mlafix.kernel @largest(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %l: !col {mlafix.dims = ["n"], mlafix.access = "read"},
    %n: index, %m: f32, %g: i32, %gs: i32, %gt: i32, %me: i32)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %one = arith.constant dense<0.0> : vector<1xf32>
  %inf = arith.constant 0xFF800000 : f32
  mlafix.forall (%t) in (%n) {
    mlafix_thread.row groups(%g, %gs, %gt, %me) {
      // CHECK: vector.maskedload %l
      // CHECK: %[[FIRST:.*]] = scf.if %{{.*}} -> (vector<4xf32>)
      // CHECK-NEXT: vector.load %x
      // CHECK: scf.for
      // CHECK: vector.maskedload %l
      // CHECK: memref.atomic_rmw maxs
      // CHECK: scf.for {{.*}} = %[[FIRST]]
      // CHECK: vector.load %x
      // OTHER-NOT: %l[
      // OTHER: scf.for
      // OTHER: vector.maskedload %l
      // OTHER: memref.atomic_rmw maxs
      // OTHER: %[[FIRST:.*]] = scf.if %{{.*}} -> (vector<4xf32>)
      // OTHER-NEXT: vector.load %x
      // OTHER: scf.for {{.*}} = %[[FIRST]]
      %most = mlafix.merge_loop %k = %c0 to %n step 4 init(%m) : f32 {
        %exists = arith.cmpi slt, %k, %n : index
        %mask1 = vector.broadcast %exists : i1 to vector<1xi1>
        %w = vector.maskedload %l[%k], %mask1, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
        %e = vector.extract %w[0] : f32 from vector<1xf32>
        %lse = arith.select %exists, %e, %inf : f32
        mlafix.yield %lse : f32
      }
      %all:3 = mlafix.merge_loop to_first %k = %c0 to %n step 4 init(%most, %m, %zero) : f32, f32, vector<4xf32> attributes {base = #mlafix.base<2>} {
        %exists = arith.cmpi slt, %k, %n : index
        %mask = vector.broadcast %exists : i1 to vector<4xi1>
        %v = vector.maskedload %x[%k], %mask, %zero : !col, vector<4xi1>, vector<4xf32> into vector<4xf32>
        mlafix.yield %most, %m, %v : f32, f32, vector<4xf32>
      }
    }
  }
}

// If each group has one chunk, code without loops is executed. This code finds the largest lse from the lses of the
// chunk, and loads no others.
// CHECK-LABEL: mlafix.kernel @only(
mlafix.kernel @only(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %l: !col {mlafix.dims = ["n"], mlafix.access = "read"},
    %n: index, %m: f32, %g: i32, %gs: i32, %gt: i32, %me: i32)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144, single_chunk = yes>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %one = arith.constant dense<0.0> : vector<1xf32>
  %inf = arith.constant 0xFF800000 : f32
  mlafix.forall (%t) in (%n) {
    mlafix_thread.row groups(%g, %gs, %gt, %me) {
      // CHECK: %[[ANY:.*]] = arith.cmpi sgt, %n, %c0 : index
      // CHECK: %[[ONE:.*]] = arith.cmpi sle, %n, %{{.*}} : index
      // CHECK: %[[ONLY:.*]] = arith.andi %[[ANY]], %[[ONE]] : i1
      // CHECK: %[[OTHERS:.*]] = scf.if %[[ONLY]] -> (f32)
      // CHECK-NEXT: scf.yield %[[POISON:.*]] : f32
      // CHECK: else
      // CHECK: vector.maskedload %l
      // CHECK: %[[FIRST:.*]]:2 = scf.if %{{.*}} -> (f32, vector<4xf32>)
      // CHECK: memref.alloca
      // CHECK: scf.if %[[ONLY]] {
      // CHECK-NEXT: scf.if %[[SHARED:.*]] {
      // CHECK-NOT: {{scf.for|vector.*load .*%[xl]}}
      // CHECK: arith.maximumf %{{.*}}, %[[FIRST]]#0
      // CHECK: memref.atomic_rmw maxs
      // CHECK: vector.store %[[FIRST]]#1
      // CHECK: nvvm.barrier
      // CHECK: } else {
      // CHECK: arith.maximumf %{{.*}}, %[[FIRST]]#0
      // CHECK: scf.for {{.*}} = %[[OTHERS]], 
      // CHECK: scf.for {{.*}} = %[[FIRST]]#0, %{{[^ ]*}} = %[[FIRST]]#1, 
      %most = mlafix.merge_loop %k = %c0 to %n step 4 init(%m) : f32 {
        %exists = arith.cmpi slt, %k, %n : index
        %mask1 = vector.broadcast %exists : i1 to vector<1xi1>
        %w = vector.maskedload %l[%k], %mask1, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
        %e = vector.extract %w[0] : f32 from vector<1xf32>
        %lse = arith.select %exists, %e, %inf : f32
        mlafix.yield %lse : f32
      }
      %all:3 = mlafix.merge_loop to_first %k = %c0 to %n step 4 init(%most, %m, %zero) : f32, f32, vector<4xf32> attributes {base = #mlafix.base<2>} {
        %exists = arith.cmpi slt, %k, %n : index
        %mask1 = vector.broadcast %exists : i1 to vector<1xi1>
        %w = vector.maskedload %l[%k], %mask1, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
        %e = vector.extract %w[0] : f32 from vector<1xf32>
        %lse = arith.select %exists, %e, %inf : f32
        %mask = vector.broadcast %exists : i1 to vector<4xi1>
        %v = vector.maskedload %x[%k], %mask, %zero : !col, vector<4xi1>, vector<4xf32> into vector<4xf32>
        %weight = arith.subf %lse, %most : f32
        mlafix.yield %most, %weight, %v : f32, f32, vector<4xf32>
      }
    }
  }
}

// The first loop finds the largest lse from other lses than those that the second loop loads, so there is no code
// without loops.
// CHECK-LABEL: mlafix.kernel @apart(
mlafix.kernel @apart(%l: !col {mlafix.dims = ["n"], mlafix.access = "read"},
    %n: index, %m: f32, %g: i32, %gs: i32, %gt: i32, %me: i32)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144, single_chunk = yes>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %one = arith.constant dense<0.0> : vector<1xf32>
  %inf = arith.constant 0xFF800000 : f32
  mlafix.forall (%t) in (%n) {
    mlafix_thread.row groups(%g, %gs, %gt, %me) {
      // CHECK-NOT: scf.yield %{{.*}}poison
      // CHECK: vector.maskedload %l
      // CHECK: %[[FIRST:.*]] = scf.if %{{.*}} -> (f32)
      // CHECK-NOT: arith.andi %{{.*}} : i1
      // CHECK: scf.for
      // CHECK: memref.atomic_rmw maxs
      // CHECK-NOT: memref.atomic_rmw
      // CHECK: scf.for {{.*}} = %[[FIRST]]
      %most = mlafix.merge_loop %k = %c0 to %n step 4 init(%m) : f32 {
        %exists = arith.cmpi slt, %k, %n : index
        %mask1 = vector.broadcast %exists : i1 to vector<1xi1>
        %w = vector.maskedload %l[%k], %mask1, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
        %e = vector.extract %w[0] : f32 from vector<1xf32>
        %lse = arith.select %exists, %e, %inf : f32
        mlafix.yield %lse : f32
      }
      %all:3 = mlafix.merge_loop to_first %k = %c0 to %n step 4 init(%most, %m, %zero) : f32, f32, vector<4xf32> attributes {base = #mlafix.base<2>} {
        %c4 = arith.constant 4 : index
        %j = arith.addi %k, %c4 : index
        %exists = arith.cmpi slt, %k, %n : index
        %mask1 = vector.broadcast %exists : i1 to vector<1xi1>
        %w = vector.maskedload %l[%j], %mask1, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
        %e = vector.extract %w[0] : f32 from vector<1xf32>
        %lse = arith.select %exists, %e, %inf : f32
        %weight = arith.subf %lse, %most : f32
        mlafix.yield %most, %weight, %zero : f32, f32, vector<4xf32>
      }
    }
  }
}
