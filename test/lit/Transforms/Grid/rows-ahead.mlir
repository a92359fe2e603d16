// A block that reduces a long row prefetches the row of a later block after its own loads. The distance between the
// blocks is the chip's number of multiprocessors, or twice that for shorter rows. Each thread prefetches a line of 128
// bytes.
// RUN: %mlafix-opt %s --specialize=D=16384 --target=sm_90 --emit=ptx --variant=dense | FileCheck %s
// RUN: %mlafix-opt %s --specialize=D=8192 --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=FAR
// RUN: %mlafix-opt %s --specialize=D=2048 --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=NONE
// RUN: %mlafix-opt %s --specialize=D=65536 --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=NONE
// RUN: %mlafix-opt %s --specialize=D=16384 --target=sm_80 --emit=ptx --variant=dense | FileCheck %s --check-prefix=OLD

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>

// CHECK-LABEL: .entry shares_dense(
// CHECK: mov.u32 %[[BLOCK:r[0-9]+]], %ctaid.x;
// CHECK: add.s32 %[[NEXT:r[0-9]+]], %[[BLOCK]], 132;
// CHECK: griddepcontrol.launch_dependents
// CHECK-COUNT-4: ld.global.v4.b32
// CHECK-NOT: cvt.f32.bf16
// CHECK: setp.gt.u32 {{.*}}, 255;
// CHECK: cvt.u64.u32 %[[ROW:rd[0-9]+]], %[[NEXT]];
// CHECK-NEXT: shl.b64 %{{.*}}, %[[ROW]], 15;
// CHECK-NOT: cvt.f32.bf16
// CHECK: prefetch.global.L2
// CHECK-NOT: prefetch
// FAR: add.s32 %{{.*}}, 264;
// FAR: griddepcontrol.launch_dependents
// FAR: prefetch.global.L2
// OLD: .entry shares_dense(
// OLD-NOT: prefetch.global.L2
// NONE: griddepcontrol.launch_dependents
// NONE-NOT: prefetch.global.L2
mlafix.kernel @shares(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %most = mlafix.reduce max %v : !tile
    %all = mlafix.splat %most : f32 -> !tile
    %shares = arith.subf %v, %all : !tile
    mlafix.store %shares, %y[%t] : !tile, !rows
  }
}
