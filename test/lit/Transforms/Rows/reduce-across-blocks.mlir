// Each block of a cluster reduces the packs of its lanes and pushes the partial results into the shared memory of all
// blocks. Before that, each block signals that it has started, since other blocks may only store to its shared memory
// once it has. An mbarrier counts the bytes that arrive. When all have arrived, each block reads its own shared memory.
// RUN: %mlafix-opt %s --kernel=sums --target=sm_90 --emit=ptx --variant=dense | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s --check-prefix=IR

!rows = memref<?x128256xbf16, strided<[?, 1], offset: ?>>
!sums = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<128256xf32, #mlafix.dim<128256>>

// The row's number is the cluster's number. The lane's number consists of the block's number in the cluster and the
// thread's number.
// IR-LABEL: mlafix.kernel @sums_dense(
// IR-SAME: geometry = #mlafix.grid<[<arg = 0, dim = 0>], rows_per_block = 1, threads = 256, least_threads = 256, cluster = 8>
// IR-DAG: %[[THREAD:.+]] = nvvm.read.ptx.sreg.tid.x
// IR-DAG: %[[BLOCK:.+]] = nvvm.read.ptx.sreg.ctaid.x
// IR-DAG: arith.remui %[[BLOCK]], %c8_i32
// IR-DAG: arith.divui %[[BLOCK]], %c8_i32
// IR: arith.ori %{{.+}}, %[[THREAD]]
// IR: nvvm.barrier
// IR-NOT: nvvm.barrier
// IR: mlafix_thread.push %{{.+}}, %[[MEMORY:.+]][%{{.+}}] to %{{.+}} : memref<64xf32, #gpu.address_space<workgroup>>
// IR: mlafix_thread.await_pushes %[[MEMORY]] : memref<64xf32, #gpu.address_space<workgroup>>
// IR-NOT: nvvm.cluster
// IR: memref.store

// CHECK: .version 8.1
// CHECK: .entry sums_dense
// A multiprocessor holds four blocks of 256 threads.
// CHECK: .reqntid 256, 1, 1
// CHECK-NEXT: .minnctapersm 4
// CHECK: .explicitcluster
// CHECK-NEXT: .reqnctapercluster 8, 1, 1
// One thread of each block expects 64 partial results of 4 bytes.
// CHECK: setp.ne.b32 [[NOT_FIRST:%p[0-9]+]], %{{r[0-9]+}}, 0
// CHECK: @[[NOT_FIRST]] bra
// CHECK: mbarrier.init.shared.b64 [[[COUNTER:.+]]],
// CHECK: mov.b32 [[BYTES:%r[0-9]+]], 256
// CHECK: mbarrier.arrive.expect_tx.shared.b64 %{{.+}}, [[[COUNTER]]], [[BYTES]]
// CHECK: fence.mbarrier_init.release.cluster
// CHECK: barrier.cluster.arrive.relaxed.aligned
// CHECK: ld.global
// CHECK: bar.sync
// CHECK-NOT: bar.sync
// CHECK: barrier.cluster.wait.aligned
// CHECK-NOT: barrier
// CHECK-COUNT-2: mapa.shared::cluster
// CHECK: st.async.shared::cluster.mbarrier::complete_tx::bytes.b32
// CHECK-NOT: st.{{async|shared}}
// CHECK: mbarrier.try_wait.parity.acquire.cluster.shared.b64 [[DONE:%p[0-9]+]], [[[COUNTER]]],
// CHECK-NEXT: not.pred [[OPEN:%p[0-9]+]], [[DONE]]
// CHECK-NEXT: @[[OPEN]] bra
// CHECK: ld.shared
// Eight blocks have eight packs each. A lane reads the packs of two blocks. Two exchanges combine the blocks, and three
// the packs.
// CHECK-COUNT-5: shfl.sync.bfly
// CHECK-NOT: shfl.sync
// CHECK-NOT: barrier
// CHECK: st.global
mlafix.kernel @sums(%y: !sums {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "V"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !sums
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %s = mlafix.reduce add %v : !tile
    mlafix.store %s, %y[%t] : f32, !sums
  }
}

// In a loop, every iteration uses the same shared memory, so a second barrier follows the reads.
// IR-LABEL: mlafix.kernel @in_a_loop_dense(
// IR: scf.for
// IR: mlafix_thread.push
// IR: nvvm.cluster.arrive {aligned}
// IR-NEXT: nvvm.cluster.wait {aligned}
// IR: memref.load
// IR: nvvm.cluster.arrive {aligned}
// IR-NEXT: nvvm.cluster.wait {aligned}
// IR: scf.yield
mlafix.kernel @in_a_loop(%y: !sums {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "V"], mlafix.access = "read"}, %count: i32) {
  %c0 = arith.constant 0 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %y, %c0 : !sums
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %sum = scf.for %i = %i0 to %count step %i1 iter_args(%acc = %zero) -> f32 : i32 {
      %all = mlafix.splat %acc : f32 -> !tile
      %more = arith.addf %v, %all : !tile
      %s = mlafix.reduce add %more : !tile
      scf.yield %s : f32
    }
    mlafix.store %sum, %y[%t] : f32, !sums
  }
}
