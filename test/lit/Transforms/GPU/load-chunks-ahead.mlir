// The next chunk of a merge loop is loaded before the branch that merges the current one; the first, before the loop.
// RUN: %mlafix-opt %s --split-input-file --pass-pipeline="builtin.module(mlafix.kernel(mlafix-load-chunks-ahead))" | FileCheck %s

!col = memref<?xf32, strided<[1], offset: ?>>
// CHECK-LABEL: mlafix.kernel @ahead
mlafix.kernel @ahead(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %n: index, %m: f32, %shared: i1)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144, single_chunk = yes>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  mlafix.forall (%t) in (%n) {
    // The first chunk; without a mask where it exists.
    // CHECK: %[[FIRST:.*]] = scf.if %{{.*}} -> (vector<4xf32>)
    // CHECK-NEXT: vector.load
    // CHECK: else
    // CHECK: vector.maskedload
    // CHECK: %[[SECOND:.*]] = arith.addi %c0, %c4
    // CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c4 iter_args(%[[RUNNING:.*]] = %m, %[[CHUNK:.*]] = %[[FIRST]], %[[NEXT:.*]] = %[[SECOND]])
    %all = scf.for %k = %c0 to %n step %c4 iter_args(%running = %m) -> (f32) {
      %exists = arith.cmpi slt, %k, %n : index
      %mask = vector.broadcast %exists : i1 to vector<4xi1>
      %v = vector.maskedload %x[%k], %mask, %zero : !col, vector<4xi1>, vector<4xf32> into vector<4xf32>
      // CHECK: vector.reduction <add>, %[[CHUNK]]
      %sum = vector.reduction <add>, %v : vector<4xf32> into f32
      // What the last iteration carries is never read.
      // CHECK: %[[IS_ANY:.*]] = arith.cmpi slt, %[[NEXT]], %{{.*}} : index
      // CHECK: %[[AHEAD:.*]] = scf.if %[[IS_ANY]] -> (vector<4xf32>)
      // CHECK: vector.load %{{.*}}[%[[NEXT]]]
      // CHECK: vector.maskedload %{{.*}}[%[[NEXT]]]
      // CHECK: ub.poison : vector<4xf32>
      // CHECK: %[[AFTER:.*]] = arith.addi %[[NEXT]], %c4
      // CHECK: %[[MERGED:.*]] = scf.if %{{.*}} -> (f32)
      %merged = scf.if %shared -> (f32) {
        nvvm.barrier
        scf.yield %running : f32
      } else {
        %both = arith.maximumf %running, %sum : f32
        scf.yield %both : f32
      } {mlafix.chunk_end}
      // CHECK-NOT: chunk_end
      // CHECK: scf.yield %[[MERGED]], %[[AHEAD]], %[[AFTER]]
      scf.yield %merged : f32
    }
  }
}

// -----

!col = memref<?xf32, strided<[1], offset: ?>>
// What is loaded depends on what the loop carries.
// CHECK-LABEL: mlafix.kernel @carried
mlafix.kernel @carried(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %n: index, %at: index, %shared: i1)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144, single_chunk = yes>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  mlafix.forall (%t) in (%n) {
    // CHECK: scf.for
    // CHECK-SAME: iter_args(%{{[^,]*}}) -> (index)
    %all = scf.for %k = %c0 to %n step %c4 iter_args(%running = %at) -> (index) {
      %exists = arith.cmpi slt, %running, %n : index
      %mask = vector.broadcast %exists : i1 to vector<4xi1>
      %v = vector.maskedload %x[%running], %mask, %zero : !col, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %sum = vector.reduction <add>, %v : vector<4xf32> into f32
      %next = arith.fptosi %sum : f32 to i32
      %merged = scf.if %shared -> (index) {
        %cast = arith.index_cast %next : i32 to index
        scf.yield %cast : index
      } else {
        scf.yield %running : index
      } {mlafix.chunk_end}
      // CHECK-NOT: chunk_end
      scf.yield %merged : index
    }
  }
}

// -----

!col = memref<?xf32, strided<[1], offset: ?>>
// The loads would take too many registers.
// CHECK-LABEL: mlafix.kernel @many
mlafix.kernel @many(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %n: index, %m: f32, %shared: i1)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144, single_chunk = yes>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : vector<40xf32>
  mlafix.forall (%t) in (%n) {
    // CHECK: scf.for
    // CHECK-SAME: iter_args(%{{[^,]*}}) -> (f32)
    %all = scf.for %k = %c0 to %n step %c4 iter_args(%running = %m) -> (f32) {
      %exists = arith.cmpi slt, %k, %n : index
      %mask = vector.broadcast %exists : i1 to vector<40xi1>
      %v = vector.maskedload %x[%k], %mask, %zero : !col, vector<40xi1>, vector<40xf32> into vector<40xf32>
      %sum = vector.reduction <add>, %v : vector<40xf32> into f32
      %merged = scf.if %shared -> (f32) {
        scf.yield %running : f32
      } else {
        %both = arith.maximumf %running, %sum : f32
        scf.yield %both : f32
      } {mlafix.chunk_end}
      scf.yield %merged : f32
    }
  }
}

// -----

!col = memref<?xf32, strided<[1], offset: ?>>
!half = memref<?xbf16, strided<[1], offset: ?>>
// The caches of an H200 drop first what is loaded of f32 by the widest access: not a single element, nor bf16.
module {
  // CHECK-LABEL: mlafix.kernel @streamed
  mlafix.kernel @streamed(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %l: !col {mlafix.dims = ["n"], mlafix.access = "read"},
                          %b: !half {mlafix.dims = ["n"], mlafix.access = "read"}, %n: index, %m: f32, %shared: i1)
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144, single_chunk = yes, streamed_bytes = 16>} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant dense<0.0> : vector<4xf32>
    %one = arith.constant dense<0.0> : vector<1xf32>
    %none = arith.constant dense<0.0> : vector<8xbf16>
    mlafix.forall (%t) in (%n) {
      // CHECK: scf.if
      // CHECK-NEXT: vector.load %{{.*}} {nontemporal = true} : {{.*}}, vector<4xf32>
      // CHECK-NEXT: vector.load %{{[^ ]*}} : {{.*}}, vector<1xf32>
      // CHECK-NEXT: vector.load %{{[^ ]*}} : {{.*}}, vector<8xbf16>
      // CHECK: scf.for
      // CHECK: vector.load %{{.*}} {nontemporal = true} : {{.*}}, vector<4xf32>
      %all = scf.for %k = %c0 to %n step %c4 iter_args(%running = %m) -> (f32) {
        %exists = arith.cmpi slt, %k, %n : index
        %mask = vector.broadcast %exists : i1 to vector<4xi1>
        %mask1 = vector.broadcast %exists : i1 to vector<1xi1>
        %mask8 = vector.broadcast %exists : i1 to vector<8xi1>
        %v = vector.maskedload %x[%k], %mask, %zero : !col, vector<4xi1>, vector<4xf32> into vector<4xf32>
        %w = vector.maskedload %l[%k], %mask1, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
        %h = vector.maskedload %b[%k], %mask8, %none : !half, vector<8xi1>, vector<8xbf16> into vector<8xbf16>
        %sum = vector.reduction <add>, %v : vector<4xf32> into f32
        %first = vector.extract %w[0] : f32 from vector<1xf32>
        %halves = arith.extf %h : vector<8xbf16> to vector<8xf32>
        %sums = vector.reduction <add>, %halves, %first : vector<8xf32> into f32
        %both = arith.addf %sum, %sums : f32
        %merged = scf.if %shared -> (f32) {
          nvvm.barrier
          scf.yield %running : f32
        } else {
          %larger = arith.maximumf %running, %both : f32
          scf.yield %larger : f32
        } {mlafix.chunk_end}
        scf.yield %merged : f32
      }
    }
  }
}

// -----

!col = memref<?xf32, strided<[1], offset: ?>>
// The first chunk comes before what finds the largest lse, where groups wait for each other, and the first lses before it.
// CHECK-LABEL: mlafix.kernel @largest
mlafix.kernel @largest(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %l: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %n: index, %m: f32, %shared: i1)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144, single_chunk = yes>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %one = arith.constant dense<0.0> : vector<1xf32>
  mlafix.forall (%t) in (%n) {
    // CHECK: vector.maskedload %l
    // CHECK: scf.if
    // CHECK-NEXT: vector.load %x
    // CHECK: scf.for
    // CHECK: vector.maskedload %l
    // CHECK-NOT: largest_lse
    // CHECK: nvvm.barrier
    // CHECK: arith.addf
    // CHECK: scf.for
    %own = scf.for %k = %c0 to %n step %c4 iter_args(%most = %m) -> (f32) {
      %exists = arith.cmpi slt, %k, %n : index
      %mask = vector.broadcast %exists : i1 to vector<1xi1>
      %v = vector.maskedload %l[%k], %mask, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
      %lse = vector.extract %v[0] : f32 from vector<1xf32>
      %larger = arith.maximumf %most, %lse : f32
      scf.yield %larger : f32
    } {mlafix.largest_lse}
    nvvm.barrier
    %reference = arith.addf %own, %own : f32
    %all = scf.for %k = %c0 to %n step %c4 iter_args(%running = %m) -> (f32) {
      %exists = arith.cmpi slt, %k, %n : index
      %mask = vector.broadcast %exists : i1 to vector<4xi1>
      %v = vector.maskedload %x[%k], %mask, %zero : !col, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %sum = vector.reduction <add>, %v, %reference : vector<4xf32> into f32
      %merged = scf.if %shared -> (f32) {
        nvvm.barrier
        scf.yield %running : f32
      } else {
        %both = arith.addf %running, %sum : f32
        scf.yield %both : f32
      } {mlafix.chunk_end, mlafix.largest_lse}
      scf.yield %merged : f32
    }
  }
}

// -----

!col = memref<?xf32, strided<[1], offset: ?>>
// What finds the largest lse for another loop stays where it is.
// CHECK-LABEL: mlafix.kernel @other
mlafix.kernel @other(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %n: index, %m: f32, %shared: i1)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144, single_chunk = yes>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  mlafix.forall (%t) in (%n) {
    // CHECK: scf.for
    // CHECK: nvvm.barrier
    // CHECK: scf.if
    // CHECK-NEXT: vector.load %x
    %own = scf.for %k = %c0 to %n step %c4 iter_args(%most = %m) -> (f32) {
      %larger = arith.maximumf %most, %m : f32
      scf.yield %larger : f32
    } {mlafix.largest_lse}
    nvvm.barrier
    %all = scf.for %k = %c0 to %n step %c4 iter_args(%running = %own) -> (f32) {
      %exists = arith.cmpi slt, %k, %n : index
      %mask = vector.broadcast %exists : i1 to vector<4xi1>
      %v = vector.maskedload %x[%k], %mask, %zero : !col, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %sum = vector.reduction <add>, %v : vector<4xf32> into f32
      %merged = scf.if %shared -> (f32) {
        nvvm.barrier
        scf.yield %running : f32
      } else {
        %both = arith.maximumf %running, %sum : f32
        scf.yield %both : f32
      } {mlafix.chunk_end}
      scf.yield %merged : f32
    }
  }
}

// -----

!col = memref<?xf32, strided<[1], offset: ?>>
// Groups with one chunk each have code without loops, which takes the largest lse from the rows' own lses: others are then not loaded.
// CHECK-LABEL: mlafix.kernel @only
mlafix.kernel @only(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %l: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %out: !col {mlafix.dims = ["n"], mlafix.access = "write"},
                    %n: index, %m: f32, %low: f32, %shared: i1, %group: index, %lane: index)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144, single_chunk = yes>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %inf = arith.constant 0xFF800000 : f32
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %one = arith.constant dense<0.0> : vector<1xf32>
  mlafix.forall (%t) in (%n) {
    // CHECK: %[[ANY:.*]] = arith.cmpi slt, %c0, %n : index
    // CHECK: %[[SECOND:.*]] = arith.addi %c0, %c4 : index
    // CHECK: %[[ONE:.*]] = arith.cmpi sle, %n, %[[SECOND]] : index
    // CHECK: %[[ONLY:.*]] = arith.andi %[[ANY]], %[[ONE]] : i1
    // CHECK: %[[OTHERS:.*]] = scf.if %[[ONLY]] -> (f32)
    // CHECK-NEXT: ub.poison
    // CHECK: else
    // CHECK: vector.maskedload %l
    // CHECK: %[[FIRST:.*]]:2 = scf.if %{{.*}} -> (f32, vector<4xf32>)
    // CHECK: memref.alloca
    // CHECK: %[[ALL:.*]] = scf.if %[[ONLY]] -> (f32)
    // CHECK-NEXT: %[[EITHER:.*]] = scf.if %shared -> (f32)
    // CHECK-NOT: {{scf.for|memref.alloca|vector.*load}}
    // CHECK: arith.maximumf %m, %[[FIRST]]#0
    // CHECK: nvvm.barrier
    // CHECK: vector.reduction <add>, %[[FIRST]]#1
    // CHECK: else
    // CHECK: arith.maximumf %m, %[[FIRST]]#0
    // CHECK: scf.yield %[[EITHER]]
    // CHECK: else
    // CHECK: scf.for {{.*}} iter_args(%{{[^ ]*}} = %m, %{{[^ ]*}} = %[[OTHERS]], %{{[^ ]*}} = %{{[^ ]*}})
    // CHECK: scf.for
    // CHECK: arith.subf %{{.*}}, %m
    // CHECK: memref.store %[[ALL]], %out
    %own = scf.for %k = %c0 to %n step %c4 iter_args(%most = %m) -> (f32) {
      %i = arith.addi %k, %lane : index
      %exists = arith.cmpi slt, %i, %n : index
      %mask = vector.broadcast %exists : i1 to vector<1xi1>
      %v = vector.maskedload %l[%i], %mask, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
      %e = vector.extract %v[0] : f32 from vector<1xf32>
      %lse = arith.select %exists, %e, %inf : f32
      %larger = arith.maximumf %most, %lse : f32
      scf.yield %larger : f32
    } {mlafix.largest_lse}
    nvvm.barrier
    %all = scf.for %k = %c0 to %n step %c4 iter_args(%running = %m) -> (f32) {
      %i = arith.addi %k, %group : index
      %exists = arith.cmpi slt, %i, %n : index
      %mask1 = vector.broadcast %exists : i1 to vector<1xi1>
      %w = vector.maskedload %l[%i], %mask1, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
      %e = vector.extract %w[0] : f32 from vector<1xf32>
      %lse = arith.select %exists, %e, %inf : f32
      %mask = vector.broadcast %exists : i1 to vector<4xi1>
      %v = vector.maskedload %x[%i], %mask, %zero : !col, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %weight = arith.subf %lse, %own : f32
      %sum = vector.reduction <add>, %v, %weight : vector<4xf32> into f32
      %place = memref.alloca() : memref<4xf32, #gpu.address_space<workgroup>>
      %merged = scf.if %shared -> (f32) {
        memref.store %sum, %place[%c0] : memref<4xf32, #gpu.address_space<workgroup>>
        nvvm.barrier
        %added = arith.subf %running, %m : f32
        scf.yield %added : f32
      } else {
        %both = arith.addf %running, %sum : f32
        scf.yield %both : f32
      } {mlafix.chunk_end, mlafix.largest_lse}
      scf.yield %merged : f32
    }
    memref.store %all, %out[%t] : !col
  }
}

// -----

!col = memref<?xf32, strided<[1], offset: ?>>
// The lses of other rows do for no code of its own.
// CHECK-LABEL: mlafix.kernel @apart
mlafix.kernel @apart(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %l: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %n: index, %m: f32, %shared: i1, %group: index, %lane: index)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144, single_chunk = yes>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant dense<0.0> : vector<1xf32>
  mlafix.forall (%t) in (%n) {
    // CHECK: vector.maskedload %l
    // CHECK-NOT: ub.poison
    // CHECK: %[[FIRST:.*]] = scf.if %{{.*}} -> (f32)
    // CHECK: scf.for
    // CHECK: nvvm.barrier
    // CHECK: scf.for
    %own = scf.for %k = %c0 to %n step %c4 iter_args(%most = %m) -> (f32) {
      %i = arith.addi %k, %lane : index
      %exists = arith.cmpi slt, %i, %n : index
      %mask = vector.broadcast %exists : i1 to vector<1xi1>
      %v = vector.maskedload %l[%i], %mask, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
      %e = vector.extract %v[0] : f32 from vector<1xf32>
      %larger = arith.maximumf %most, %e : f32
      scf.yield %larger : f32
    } {mlafix.largest_lse}
    nvvm.barrier
    %all = scf.for %k = %c0 to %n step %c4 iter_args(%running = %m) -> (f32) {
      %i = arith.addi %k, %group : index
      %exists = arith.cmpi slt, %i, %n : index
      %mask1 = vector.broadcast %exists : i1 to vector<1xi1>
      %j = arith.addi %i, %c4 : index
      %w = vector.maskedload %l[%j], %mask1, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
      %e = vector.extract %w[0] : f32 from vector<1xf32>
      %sum = arith.subf %e, %own : f32
      %merged = scf.if %shared -> (f32) {
        nvvm.barrier
        scf.yield %running : f32
      } else {
        %both = arith.addf %running, %sum : f32
        scf.yield %both : f32
      } {mlafix.chunk_end, mlafix.largest_lse}
      scf.yield %merged : f32
    }
  }
}

// -----

!col = memref<?xf32, strided<[1], offset: ?>>
// Nor do those a constant further than the number that a loop counts, which its chunks do not begin with.
// CHECK-LABEL: mlafix.kernel @further
mlafix.kernel @further(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %l: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %n: index, %m: f32, %shared: i1, %group: index, %lane: index)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144, single_chunk = yes>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant dense<0.0> : vector<1xf32>
  mlafix.forall (%t) in (%n) {
    // CHECK: vector.maskedload %l
    // CHECK-NOT: ub.poison
    // CHECK: %[[FIRST:.*]] = scf.if %{{.*}} -> (f32)
    // CHECK: scf.for
    // CHECK: nvvm.barrier
    // CHECK: scf.for
    %own = scf.for %k = %c0 to %n step %c4 iter_args(%most = %m) -> (f32) {
      %i = arith.addi %k, %lane : index
      %exists = arith.cmpi slt, %i, %n : index
      %mask = vector.broadcast %exists : i1 to vector<1xi1>
      %v = vector.maskedload %l[%i], %mask, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
      %e = vector.extract %v[0] : f32 from vector<1xf32>
      %larger = arith.maximumf %most, %e : f32
      scf.yield %larger : f32
    } {mlafix.largest_lse}
    nvvm.barrier
    %all = scf.for %k = %c0 to %n step %c4 iter_args(%running = %m) -> (f32) {
      %i = arith.addi %k, %group : index
      %exists = arith.cmpi slt, %i, %n : index
      %mask1 = vector.broadcast %exists : i1 to vector<1xi1>
      %j = arith.addi %k, %c4 : index
      %w = vector.maskedload %l[%j], %mask1, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
      %e = vector.extract %w[0] : f32 from vector<1xf32>
      %sum = arith.subf %e, %own : f32
      %merged = scf.if %shared -> (f32) {
        nvvm.barrier
        scf.yield %running : f32
      } else {
        %both = arith.addf %running, %sum : f32
        scf.yield %both : f32
      } {mlafix.chunk_end, mlafix.largest_lse}
      scf.yield %merged : f32
    }
  }
}

// -----

!col = memref<?xf32, strided<[1], offset: ?>>
// An index that is used again and again is compared once.
// CHECK-LABEL: mlafix.kernel @powers
mlafix.kernel @powers(%x: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %l: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %n: index, %m: f32, %shared: i1, %group: index, %lane: index)
    attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 1, groups = 16>, chunk_ahead_bytes = 144, single_chunk = yes>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant dense<0.0> : vector<1xf32>
  mlafix.forall (%t) in (%n) {
    // CHECK: ub.poison
    %own = scf.for %k = %c0 to %n step %c4 iter_args(%most = %m) -> (f32) {
      %p0 = arith.addi %k, %lane : index
      %p1 = arith.muli %p0, %p0 : index
      %p2 = arith.muli %p1, %p1 : index
      %p3 = arith.muli %p2, %p2 : index
      %p4 = arith.muli %p3, %p3 : index
      %p5 = arith.muli %p4, %p4 : index
      %p6 = arith.muli %p5, %p5 : index
      %p7 = arith.muli %p6, %p6 : index
      %p8 = arith.muli %p7, %p7 : index
      %p9 = arith.muli %p8, %p8 : index
      %p10 = arith.muli %p9, %p9 : index
      %p11 = arith.muli %p10, %p10 : index
      %p12 = arith.muli %p11, %p11 : index
      %p13 = arith.muli %p12, %p12 : index
      %p14 = arith.muli %p13, %p13 : index
      %p15 = arith.muli %p14, %p14 : index
      %p16 = arith.muli %p15, %p15 : index
      %p17 = arith.muli %p16, %p16 : index
      %p18 = arith.muli %p17, %p17 : index
      %p19 = arith.muli %p18, %p18 : index
      %p20 = arith.muli %p19, %p19 : index
      %p21 = arith.muli %p20, %p20 : index
      %p22 = arith.muli %p21, %p21 : index
      %p23 = arith.muli %p22, %p22 : index
      %p24 = arith.muli %p23, %p23 : index
      %p25 = arith.muli %p24, %p24 : index
      %p26 = arith.muli %p25, %p25 : index
      %p27 = arith.muli %p26, %p26 : index
      %p28 = arith.muli %p27, %p27 : index
      %p29 = arith.muli %p28, %p28 : index
      %p30 = arith.muli %p29, %p29 : index
      %p31 = arith.muli %p30, %p30 : index
      %p32 = arith.muli %p31, %p31 : index
      %p33 = arith.muli %p32, %p32 : index
      %p34 = arith.muli %p33, %p33 : index
      %p35 = arith.muli %p34, %p34 : index
      %p36 = arith.muli %p35, %p35 : index
      %p37 = arith.muli %p36, %p36 : index
      %p38 = arith.muli %p37, %p37 : index
      %p39 = arith.muli %p38, %p38 : index
      %p40 = arith.muli %p39, %p39 : index
      %exists = arith.cmpi slt, %p0, %n : index
      %mask = vector.broadcast %exists : i1 to vector<1xi1>
      %v = vector.maskedload %l[%p40], %mask, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
      %e = vector.extract %v[0] : f32 from vector<1xf32>
      %larger = arith.maximumf %most, %e : f32
      scf.yield %larger : f32
    } {mlafix.largest_lse}
    nvvm.barrier
    %all = scf.for %k = %c0 to %n step %c4 iter_args(%running = %m) -> (f32) {
      %q0 = arith.addi %k, %group : index
      %q1 = arith.muli %q0, %q0 : index
      %q2 = arith.muli %q1, %q1 : index
      %q3 = arith.muli %q2, %q2 : index
      %q4 = arith.muli %q3, %q3 : index
      %q5 = arith.muli %q4, %q4 : index
      %q6 = arith.muli %q5, %q5 : index
      %q7 = arith.muli %q6, %q6 : index
      %q8 = arith.muli %q7, %q7 : index
      %q9 = arith.muli %q8, %q8 : index
      %q10 = arith.muli %q9, %q9 : index
      %q11 = arith.muli %q10, %q10 : index
      %q12 = arith.muli %q11, %q11 : index
      %q13 = arith.muli %q12, %q12 : index
      %q14 = arith.muli %q13, %q13 : index
      %q15 = arith.muli %q14, %q14 : index
      %q16 = arith.muli %q15, %q15 : index
      %q17 = arith.muli %q16, %q16 : index
      %q18 = arith.muli %q17, %q17 : index
      %q19 = arith.muli %q18, %q18 : index
      %q20 = arith.muli %q19, %q19 : index
      %q21 = arith.muli %q20, %q20 : index
      %q22 = arith.muli %q21, %q21 : index
      %q23 = arith.muli %q22, %q22 : index
      %q24 = arith.muli %q23, %q23 : index
      %q25 = arith.muli %q24, %q24 : index
      %q26 = arith.muli %q25, %q25 : index
      %q27 = arith.muli %q26, %q26 : index
      %q28 = arith.muli %q27, %q27 : index
      %q29 = arith.muli %q28, %q28 : index
      %q30 = arith.muli %q29, %q29 : index
      %q31 = arith.muli %q30, %q30 : index
      %q32 = arith.muli %q31, %q31 : index
      %q33 = arith.muli %q32, %q32 : index
      %q34 = arith.muli %q33, %q33 : index
      %q35 = arith.muli %q34, %q34 : index
      %q36 = arith.muli %q35, %q35 : index
      %q37 = arith.muli %q36, %q36 : index
      %q38 = arith.muli %q37, %q37 : index
      %q39 = arith.muli %q38, %q38 : index
      %q40 = arith.muli %q39, %q39 : index
      %exists = arith.cmpi slt, %q0, %n : index
      %mask = vector.broadcast %exists : i1 to vector<1xi1>
      %w = vector.maskedload %l[%q40], %mask, %one : !col, vector<1xi1>, vector<1xf32> into vector<1xf32>
      %e = vector.extract %w[0] : f32 from vector<1xf32>
      %sum = arith.subf %e, %own : f32
      %merged = scf.if %shared -> (f32) {
        nvvm.barrier
        scf.yield %running : f32
      } else {
        %both = arith.addf %running, %sum : f32
        scf.yield %both : f32
      } {mlafix.chunk_end, mlafix.largest_lse}
      scf.yield %merged : f32
    }
  }
}
