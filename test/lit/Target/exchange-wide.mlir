// Ranks send rows of bf16 as fp8. A pack has 16 elements, which are 32 bytes of the row that is sent and of this rank's
// own row. Both rows are loaded before the ranks' wait, each pack by two accesses.
// RUN: %mlafix-opt %s --specialize=D=128,ranks=2 --target=sm_90 --variant=dense --emit=ptx | FileCheck %s

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!outs = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!staged = memref<?x2x?x?x?xf8E4M3FN, strided<[?, ?, ?, ?, 1], offset: ?>>
!row = tensor<?xf32, #mlafix.dim<"D">>

// There is one prefetch for each 32 bytes: two packs that are sent, and two of this rank's own row.
// CHECK-LABEL: .entry wide_dense(
// CHECK-COUNT-4: prefetch.global.L2
// CHECK-NOT: prefetch
// CHECK: griddepcontrol.wait;
// CHECK: @%[[ISROW:p[0-9]+]] ld.global.v4.b32 {{.*}}, [%[[SENT:rd[0-9]+]]];
// CHECK: @%[[ISROW]] ld.global.v4.b32 {{.*}}, [
// CHECK: @%[[ISROW]] ld.global.v4.b32 {{.*}}, [
// CHECK: @%[[ISROW]] ld.global.v4.b32 {{.*}}, [
// CHECK-NOT: ld.global
// CHECK: ld.relaxed.gpu.global.b64
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK-COUNT-4: @%[[ISROW]] ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: bar.red.and.pred
// CHECK: bar.red.and.pred
// After the ranks' wait, only the received row is loaded.
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
mlafix.kernel @wide(
    %out: !outs {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %staged: !staged {mlafix.dims = ["ranks", "turns", "r", "n", "D"], mlafix.access = "update", mlafix.peers},
    %partial: !rows {mlafix.dims = ["ranks", "n", "D"], mlafix.access = "read"},
    %rank: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !outs
  mlafix.forall (%t) in (%n) {
    %turn = mlafix.turn : index
    %other = arith.subi %c1, %rank : index
    %row = mlafix.load %partial[%c1, %t] : !rows -> !row
    mlafix.store %row, %staged[%other, %turn, %rank, %t] : !row, !staged
    mlafix.exchange
    %own = mlafix.load %partial[%c0, %t] : !rows -> !row
    %received = mlafix.load %staged[%rank, %turn, %other, %t] : !staged -> !row
    %sum = arith.addf %own, %received : !row
    mlafix.store %sum, %out[%t] : !row, !outs
  }
}
