// The conversion builds branches and loops in a kernel that has none.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-kernels-to-nvvm)" | FileCheck %s

!col = memref<?xf32, strided<[1], offset: ?>>
!part = memref<16xf32, #gpu.address_space<workgroup>>

// CHECK: llvm.func @awaits
// CHECK: scf.while
module attributes {mlafix.target = "sm_90", mlafix.signature = {name = "awaits"}} {
  mlafix.kernel @awaits(%x: !col {mlafix.dims = ["n"], mlafix.access = "update"}) attributes {
      geometry = #mlafix.grid<[<arg = 0, dim = 0>], rows_per_block = 1, threads = 64, least_threads = 64, cluster = 2>, guards = [],
      plan = #mlafix.plan<layout = <lanes = 128, packs = 1, pack = 1, rows = 1, blocks = 2>>} {
    %c0 = arith.constant 0 : index
    %parts = memref.alloca() : !part
    mlafix_thread.await_pushes %parts : !part
    %v = memref.load %parts[%c0] : !part
    memref.store %v, %x[%c0] : !col
  }
}
