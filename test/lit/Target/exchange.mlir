// Tests the code of a kernel whose ranks store rows into each other's memory and then sum them.

// RUN: %mlafix-opt %s --specialize=H=64,D=128,T=bf16,ranks=2 --target=sm_90 --variant=dense --emit=ptx -o %t.ptx
// RUN: FileCheck %s < %t.ptx
// RUN: FileCheck %s --check-prefix=NEVER < %t.ptx
// RUN: %mlafix-opt %s --specialize=H=64,D=128,T=bf16 --target=sm_80 --emit=ptx | FileCheck %s --check-prefix=NEVER
// RUN: not %mlafix-opt %s --specialize=H=64,D=128,T=bf16,ranks=2 --target=x86-64-v3 --emit=llvm 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: error: expected a GPU as target of a kernel with an exchange, got x86-64-v3

// Errors for fields of a plan that a kernel with an exchange cannot have:
// RUN: not %mlafix-opt %s --specialize=H=64,D=128,T=bf16,ranks=2 --target=sm_90 --emit=layout --mlafix-plan=lanes=32 2>&1 | FileCheck %s --check-prefix=LANES
// LANES: error: expected no 'lanes', 'rows' or 'parts' for a code version whose rows span groups of lanes, blocks or ranks, got one for 'dense'
// RUN: not %mlafix-opt %s --specialize=H=64,D=128,T=bf16,ranks=2 --target=sm_90 --emit=layout --mlafix-plan=interleaved=yes 2>&1 | FileCheck %s --check-prefix=INTERLEAVED
// INTERLEAVED: error: expected 'interleaved' to be no in a kernel with an exchange, got yes
// RUN: not %mlafix-opt %s --specialize=H=64,D=128,T=bf16,ranks=2 --target=sm_90 --emit=layout --mlafix-plan=early_tables=yes 2>&1 | FileCheck %s --check-prefix=TABLES
// TABLES: error: expected 'early_tables' to be no in a grid without dependent launch, or whose ranks wait for each other, got yes

// Memory that a peer writes is not read through non-coherent caches.
// NEVER-NOT: .nc
// NEVER-NOT: .L2::
// NEVER-NOT: ldu.

// The kernel waits for the preceding grid. Then it loads all rows that are sent, without a branch, together with the
// number of this collective and the failure flag. Before the wait, only rows of this rank itself are prefetched.
// CHECK: .entry push_dense(
// CHECK-NOT: griddepcontrol
// CHECK: prefetch.global.L2 [%[[FIRST:rd[0-9]+]]];
// CHECK: prefetch.global.L2 [%[[SECOND:rd[0-9]+]]];
// CHECK: prefetch.global.L2 [%[[THIRD:rd[0-9]+]]];
// CHECK: prefetch.global.L2 [%[[FOURTH:rd[0-9]+]]];
// CHECK-COUNT-2: prefetch.global.L2
// CHECK-NOT: prefetch
// CHECK: griddepcontrol.wait;
// CHECK-NOT: prefetch
// CHECK: @%[[ISROW:p[0-9]+]] ld.global.v4.b32 [[ROW:{.*}]], [%[[FIRST]]];
// CHECK: @%[[ISROW]] ld.global.v4.b32 [[REST:{.*}]], [%[[SECOND]]];
// CHECK: @%[[ISROW]] ld.global.v4.b32 [[OTHER:{.*}]], [%[[THIRD]]];
// CHECK: @%[[ISROW]] ld.global.v4.b32 [[OTHERREST:{.*}]], [%[[FOURTH]]];
// CHECK-NOT: {{bra|setp}}
// CHECK: ld.relaxed.gpu.global.b64 %[[LAST:rd[0-9]+]], [%[[OWN:rd[0-9]+]]];
// CHECK-NEXT: ld.relaxed.sys.global.b64 %[[FAILED:rd[0-9]+]], [%[[OWN]]+128];
// CHECK: st.global.v4.b32 [%{{.*}}], [[ROW]];
// CHECK: st.global.v4.b32 [%{{.*}}], [[REST]];
// CHECK: st.global.v4.b32 [%{{.*}}], [[OTHER]];
// CHECK: st.global.v4.b32 [%{{.*}}], [[OTHERREST]];
// This rank's own row, which is merged with the received rows, is loaded while the ranks wait.
// CHECK: @%[[ISROW]] ld.global.v4.b32 [[MINE:{.*}]], [
// CHECK: @%[[ISROW]] ld.global.v4.b32
// After all threads of the block have stored, the block notifies the same block of each rank.
// CHECK: add.s64 %[[EPOCH:rd[0-9]+]], %[[LAST]], 1;
// CHECK: bar.red.and.pred
// CHECK-NOT: ld.{{(global|relaxed|acquire)}}
// CHECK: st.release.sys.global.b64 [%{{.*}}+2048], %[[EPOCH]];
// The last block that arrives here increments the collective's number in memory. No block waits for the increment.
// CHECK: fence.acq_rel.gpu;
// CHECK: atom.global.add.u64
// CHECK: st.relaxed.gpu.global.b64 [%[[OWN]]+8], 0;
// CHECK: st.relaxed.gpu.global.b64 [%[[OWN]]], %[[EPOCH]];
// CHECK: ld.acquire.sys.global.b64 %{{.*}}, [%{{.*}}+2048];
// CHECK-NOT: ld.global
// CHECK: bar.red.and.pred
// The received rows of all ranks are loaded from this rank's memory.
// CHECK: ld.global.v4.b32
// CHECK: ld.global.v4.b32
// CHECK: st.global.v4.b32
// There is no wait at the end.
// CHECK-NOT: {{fence|acquire|bar.red}}
// CHECK: ret

// All code versions have the same number of rows per block, since ranks may run different versions.
// RUN: %mlafix-opt %s --specialize=H=64,D=128,T=bf16,ranks=2 --target=sm_90 --emit=layout | FileCheck %s --check-prefix=LAYOUT
// LAYOUT: @push_dense({{.*}}layout = <lanes = 8, packs = 2, pack = 8, rows = [[ROWS:[0-9]+]]>
// LAYOUT: @push_fast({{.*}}layout = <lanes = 8, packs = 2, pack = 8, rows = [[ROWS]]>
// LAYOUT: @push_any({{.*}}layout = <lanes = 8, packs = 16, pack = 1, rows = [[ROWS]]>

// Blocks process the same rows on all ranks, whatever conditions hold on one rank.
// RUN: %mlafix-opt %s --specialize=H=64,D=128,T=bf16,ranks=2 --target=sm_90 --variant=dense --emit=distributed | FileCheck %s --check-prefix=PLACES
// PLACES: %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ctaid.x
// PLACES-NEXT: arith.muli %[[BLOCK]],

!outs = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!rows = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1], offset: ?>>
!staged = memref<?x2x?x?x?x?xbf16, strided<[?, ?, ?, ?, ?, 1], offset: ?>>
!row = tensor<?xf32, #mlafix.dim<"D">>

mlafix.kernel @push(
    %out: !outs {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %staged: !staged {mlafix.dims = ["ranks", "turns", "r", "n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update", mlafix.peers},
    %partial: !rows {mlafix.dims = ["ranks", "n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %rank: index, %live: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !outs
  %H = memref.dim %out, %c1 : !outs
  %ranks = memref.dim %staged, %c0 : !staged
  mlafix.forall (%t, %h) in (%n, %H) {
    %turn = mlafix.turn : index
    %isLive = arith.cmpi slt, %t, %live : index
    scf.for %r = %c0 to %ranks step %c1 {
      %row = mlafix.load %partial[%r, %t, %h] : !rows -> !row
      mlafix.store %row, %staged[%r, %turn, %rank, %t, %h] if %isLive : !row, !staged
    }
    mlafix.exchange
    %none = mlafix.load %partial[%c1, %t, %h] : !rows -> !row
    %sum = scf.for %r = %c0 to %ranks step %c1 iter_args(%acc = %none) -> (!row) {
      %row = mlafix.load %staged[%rank, %turn, %r, %t, %h] : !staged -> !row
      %next = arith.addf %acc, %row : !row
      scf.yield %next : !row
    }
    mlafix.store %sum, %out[%t, %h] : !row, !outs
  }
}
