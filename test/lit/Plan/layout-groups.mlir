// Groups of lanes share a merge loop if only the first group needs the result of the loop, and if the groups' chunks
// fit into a block's shared memory.
// RUN: %mlafix-opt %s --target=sm_90 --emit=layout --variant=dense --kernel=chained --specialize=D=128 | FileCheck %s --check-prefix=CHAINED
// RUN: %mlafix-opt %s --target=sm_90 --emit=layout --variant=dense --kernel=chained --specialize=D=256 | FileCheck %s --check-prefix=LONG
// RUN: %mlafix-opt %s --target=sm_90 --emit=layout --variant=dense --kernel=needed --specialize=D=128 | FileCheck %s --check-prefix=NEEDED
// RUN: %mlafix-opt %kernels/combine_split_kv.mlir --target=sm_90 --emit=layout --variant=dense --specialize=H=16,D=512,O=bf16,T=f8e4m3fn | FileCheck %s --check-prefix=FP8

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!many = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!state = !mlafix.state<"D", e>

// A kernel with two merge loops; the second begins with the result of the first. A row of 256 elements would have two
// packs per lane, but the chunks of 512 threads would then not fit into shared memory, so a lane has one pack.
// CHAINED: layout = <lanes = 16, packs = 1, pack = 8, rows = 1, groups = 32>
// LONG: layout = <lanes = 32, packs = 1, pack = 8, rows = 1, groups = 32>
mlafix.kernel @chained(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !many {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %w: !many {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"}, %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %count = memref.dim %v, %c1 : !many
  mlafix.forall (%t) in (%n) {
    %none = mlafix.identity : !state
    %all = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %none) -> (!state) {
      %p = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !many, !lses -> !state
      %m = mlafix.merge %acc, %p : !state
      scf.yield %m : !state
    }
    %both = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %all) -> (!state) {
      %p = mlafix.load_state %w[%t, %k] lse %s[%t, %k] : !many, !lses -> !state
      %m = mlafix.merge %acc, %p : !state
      scf.yield %m : !state
    }
    mlafix.store_state %both to %out[%t] : !state, !rows
  }
}

// The loads of the second loop depend on the result of the first loop. Only the first of several groups would have this
// result, so groups share neither loop.
// NEEDED: layout = <lanes = 16, packs = 1, pack = 8, rows = {{[0-9]+}}>
mlafix.kernel @needed(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !many {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %w: !many {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"}, %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %out, %c0 : !rows
  %count = memref.dim %v, %c1 : !many
  mlafix.forall (%t) in (%n) {
    %none = mlafix.identity : !state
    %all = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %none) -> (!state) {
      %p = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !many, !lses -> !state
      %m = mlafix.merge %acc, %p : !state
      scf.yield %m : !state
    }
    %lse = mlafix.lse_of %all : !state
    %few = arith.cmpf olt, %lse, %zero : f32
    %both = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %none) -> (!state) {
      %p = mlafix.load_state %w[%t, %k] lse %s[%t, %k] if %few : !many, !lses -> !state
      %m = mlafix.merge %acc, %p : !state
      scf.yield %m : !state
    }
    mlafix.store_state %both to %out[%t] : !state, !rows
  }
}

// An access of 16 bytes contains 16 elements of fp8. The chunks of lanes with two such packs would not fit into shared
// memory, so a lane has one pack.
// FP8: layout = <lanes = 32, packs = 1, pack = 16, rows = 1, groups = 32>
