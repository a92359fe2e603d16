// Each buffer through which lanes exchange values has its own shared memory if a block has enough for all buffers.
// Otherwise these buffers share memory, except those whose contents must last. A kernel that needs more memory than a
// block has is an error.

// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(mlafix-kernels-to-nvvm)" | FileCheck %s

!col = memref<?xf32, strided<[1], offset: ?>>
!part = memref<384xf32, #mlafix_thread.scratch>

// CHECK: llvm.mlir.global internal @apart_shared{{.*}} : !llvm.array<384 x f32>
// CHECK: llvm.mlir.global internal @apart_shared{{.*}} : !llvm.array<384 x f32>
// CHECK-NOT: llvm.mlir.global
// CHECK: llvm.func @apart
module attributes {mlafix.target = "sm_90", mlafix.signature = {name = "apart"}} {
  mlafix.kernel @apart(%x: !col {mlafix.dims = ["n"], mlafix.access = "update"}) attributes {
      geometry = #mlafix.grid<[<arg = 0, dim = 0>], rows_per_block = 1, threads = 64, least_threads = 64>, guards = [],
      plan = #mlafix.plan<layout = <lanes = 64, packs = 1, pack = 1, rows = 1>>} {
    %c0 = arith.constant 0 : index
    %a = memref.alloca() : !part
    %b = memref.alloca() : !part
    %v = memref.load %a[%c0] : !part
    memref.store %v, %b[%c0] : !part
  }
}

// -----

!col = memref<?xf32, strided<[1], offset: ?>>
!part = memref<384xf32, #mlafix_thread.scratch>
!more = memref<512xf32, #mlafix_thread.scratch>
!lasting = memref<384xf32, #gpu.address_space<workgroup>>

// CHECK-DAG: llvm.mlir.global internal @common_shared{{.*}} : !llvm.array<2048 x i8>
// CHECK-DAG: llvm.mlir.global internal @common_shared{{.*}} : !llvm.array<384 x f32>
// CHECK-NOT: llvm.mlir.global
// CHECK: llvm.func @common
module attributes {mlafix.target = "sm_90", mlafix.signature = {name = "common"}} {
  mlafix.kernel @common(%x: !col {mlafix.dims = ["n"], mlafix.access = "update"}) attributes {
      geometry = #mlafix.grid<[<arg = 0, dim = 0>], rows_per_block = 1, threads = 64, least_threads = 64>, guards = [],
      plan = #mlafix.plan<layout = <lanes = 64, packs = 1, pack = 1, rows = 1>>} {
    %c0 = arith.constant 0 : index
    %a = memref.alloca() : !part
    %b = memref.alloca() : !more
    %c = memref.alloca() : !lasting
    %v = memref.load %a[%c0] : !part
    memref.store %v, %b[%c0] : !more
    memref.store %v, %c[%c0] : !lasting
  }
}

// -----

!col = memref<?xf32, strided<[1], offset: ?>>
!most = memref<12285xf32, #gpu.address_space<workgroup>>
!few = memref<4xf32, #gpu.address_space<workgroup>>

module attributes {mlafix.target = "sm_90", mlafix.signature = {name = "much"}} {
  mlafix.kernel @much(%x: !col {mlafix.dims = ["n"], mlafix.access = "update"}) attributes {
      geometry = #mlafix.grid<[<arg = 0, dim = 0>], rows_per_block = 1, threads = 64, least_threads = 64>, guards = [],
      plan = #mlafix.plan<layout = <lanes = 64, packs = 1, pack = 1, rows = 1>>} {
    // expected-error @below {{expected the reductions, swaps and merge loops of a kernel to take at most 49152 bytes of a block's shared memory, got 49168; this one takes the most}}
    %a = memref.alloca() : !most
    %b = memref.alloca() : !few
  }
}
