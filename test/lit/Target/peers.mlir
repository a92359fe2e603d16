// Tests the code of a merge of the states of all ranks, which each rank reads from the memory of all ranks.

// RUN: %mlafix-opt %s --specialize=H=64,D=128,T=bf16,ranks=2 --target=sm_90 --variant=dense --emit=ptx -o %t.ptx
// RUN: FileCheck %s < %t.ptx
// RUN: FileCheck %s --check-prefix=NEVER < %t.ptx
// RUN: %mlafix-opt %s --specialize=H=64,D=128,T=bf16 --target=sm_90 --emit=ptx -o %t.many.ptx
// RUN: FileCheck %s --check-prefix=NEVER < %t.many.ptx
// RUN: FileCheck %s --check-prefix=MANY < %t.many.ptx
// RUN: %mlafix-opt %s --specialize=H=64,D=128,T=bf16 --target=sm_80 --emit=ptx | FileCheck %s --check-prefix=NEVER
// RUN: %mlafix-opt %s --specialize=H=64,D=128,T=bf16,ranks=3 --target=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=CPU
// RUN: %mlafix-opt %s --specialize=H=64,D=128,T=bf16 --target=cpu --emit=header --name=merge_peers | FileCheck %s --check-prefix=HEADER
// HEADER: rows {{.*}}of each rank, bf16 [ranks, n, H = 64, D = 128]
// HEADER: const mlafix_tensor *out, const mlafix_tensor *out_lse, const mlafix_peers * rows, const mlafix_peers * parts

// A peer's memory is not prefetched, and not read through non-coherent caches, since it may change until the peer has
// arrived.
// NEVER-NOT: prefetch
// NEVER-NOT: .nc
// NEVER-NOT: .L2::
// NEVER-NOT: ldu.

// The parameters contain the addresses of two tensors per rank, then this rank's number, the time-out, the address for
// a failure, and the addresses of the workspaces.
// CHECK: .entry merge_peers_dense(
// CHECK: .param .align 8 .b8 merge_peers_dense_param_[[ROWS:[0-9]+]][16]
// CHECK: .param .align 8 .b8 merge_peers_dense_param_[[LSES:[0-9]+]][16]
// CHECK: .param .align 8 .b8 merge_peers_dense_param_[[GROUP:[0-9]+]][40]
// MANY: _param_{{[0-9]+}}[576]
// MANY: _param_{{[0-9]+}}[576]
// MANY: _param_{{[0-9]+}}[600]

// The kernel waits for the preceding grid. It loads the number of this collective, the failure flag and a rank's flag
// together, and tells all ranks that this rank has arrived.
// CHECK: griddepcontrol.wait;
// CHECK: ld.relaxed.gpu.global.b64
// CHECK-NOT: bra
// CHECK: ld.relaxed.sys.global.b64 {{.*}}+128]
// CHECK-NOT: bra
// CHECK: ld.acquire.sys.global.b64
// CHECK: st.release.sys.global.b64 [%{{.*}}+256]
// The kernel polls each rank's flag until the rank has arrived. After some polls, the kernel also checks the failure
// flag, and whether the clock has reached the time-out.
// CHECK: ld.acquire.sys.global.b64 %[[FLAG:.*]], [{{.*}}+256]
// CHECK-NEXT: setp.lt.u64 %{{.*}}, %[[FLAG]]
// CHECK-NOT: {{ld\.|globaltimer}}
// CHECK: @%{{.*}} bra
// CHECK: globaltimer
// CHECK: ld.acquire.sys.global.b64 {{.*}}+256]
// CHECK: @%{{.*}} bra
// CHECK: globaltimer
// CHECK: ld.relaxed.sys.global.b64 {{.*}}+128]
// If a rank has not arrived, each thread that notices this tells all ranks and the host.
// CHECK: st.relaxed.sys.global.b64 {{.*}}+128]
// CHECK: ld.relaxed.sys.global.b64 %[[CODE:.*]], [{{.*}}+128]
// CHECK: st.relaxed.sys.global.b64 {{.*}}+128], %[[CODE]]
// CHECK: st.release.sys.global.b64 [%{{[a-z0-9]*}}], %[[CODE]]
// CHECK-NOT: ld.global
// CHECK: bar.red.and.pred
// The rows of all ranks are loaded together.
// CHECK: ld.global.v4.b32
// CHECK: ld.global.v4.b32
// CHECK: st.global.v4.b32
// After the block has read all rows, it checks whether a rank has failed. The last block of the grid tells all ranks
// that this rank has read their memory, and waits until they have read this rank's memory.
// CHECK: bar.sync
// CHECK: ld.relaxed.gpu.global.b64
// CHECK: ld.relaxed.sys.global.b64 {{.*}}+128]
// CHECK: fence.acq_rel.gpu
// CHECK: atom{{.*}}.add.u64
// CHECK-NOT: {{fence.acq_rel.gpu|ld.relaxed.gpu}}
// CHECK: fence.acq_rel.sys
// CHECK-NOT: fence
// CHECK: st.relaxed.sys.global.b64 [%{{.*}}+896]
// CHECK: ld.acquire.sys.global.b64 {{.*}}+896]
// CHECK: st.relaxed.gpu.global.b64
// CHECK: st.relaxed.gpu.global.b64
// If a rank failed, the result is NaN and nothing is loaded.
// CHECK: bar.red.and.pred
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32 {{.*}}, {2143322048, 2143322048, 2143322048, 2143322048}
// CHECK-NOT: ld.global
// CHECK: ret

// On a CPU, one process has all tensors, so there is nothing to wait for.
// CPU: define {{.*}}void @merge_peers_any(ptr
// CPU-NOT: atomic

// Rows of fp8 are loaded 16 bytes at a time, although the output's elements are wider.
// RUN: sed '/%%out:/s/"T"/"O"/' %s | %mlafix-opt - --specialize=H=64,D=128,O=bf16,T=f8e4m3fn,ranks=2 --target=sm_90 --variant=dense --emit=ptx | FileCheck %s --check-prefix=BYTES
// BYTES-NOT: ld.global.v4.b16
// BYTES-COUNT-2: ld.global.v4.b32

!outs = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!rows = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1], offset: ?>>
!parts = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>

mlafix.kernel @merge_peers(
    %out: !outs {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %out_lse: !lses {mlafix.dims = ["n", "H"], mlafix.access = "write"},
    %rows: !rows {mlafix.dims = ["ranks", "n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read", mlafix.peers},
    %parts: !parts {mlafix.dims = ["ranks", "n", "H"], mlafix.access = "read", mlafix.peers}) attributes {defaults = {B = "e"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !outs
  %H = memref.dim %out, %c1 : !outs
  %ranks = memref.dim %rows, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %none = mlafix.identity : !mlafix.state<"D", "B">
    %all = scf.for %r = %c0 to %ranks step %c1 iter_args(%acc = %none) -> (!mlafix.state<"D", "B">) {
      %part = mlafix.load_state %rows[%r, %t, %h] lse %parts[%r, %t, %h] : !rows, !parts -> !mlafix.state<"D", "B">
      %sum = mlafix.merge %acc, %part : !mlafix.state<"D", "B">
      scf.yield %sum : !mlafix.state<"D", "B">
    }
    mlafix.store_state %all to %out[%t, %h] lse %out_lse[%t, %h] : !mlafix.state<"D", "B">, !outs, !lses
  }
}
