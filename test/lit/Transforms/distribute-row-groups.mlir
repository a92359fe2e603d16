// A reduction of groups exchanges values only between the lanes that share a group. In a row with one element per
// group, each element is held by the lanes that share its group.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=G=4,K=128},mlafix.kernel(mlafix-group-rows),mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=G=4,K=96},mlafix.kernel(mlafix-group-rows),mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s --check-prefix=ODD
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=G=2,K=1024},mlafix.kernel(mlafix-group-rows),mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s --check-prefix=WIDE
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=G=2,K=64},mlafix.kernel(mlafix-group-rows),mlafix-plan-kernel{target=x86-64-v3 machine=loopPacks=8},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s --check-prefix=CPU
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=G=20,K=64},mlafix.kernel(mlafix-group-rows),mlafix-plan-kernel{target=x86-64-v3},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s --check-prefix=LOOP
// RUN: %mlafix-opt %s --specialize=G=4,K=128 --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=PTX

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!each = memref<?x?xf32, strided<[?, 1], offset: ?>>

// 64 packs of 8 elements in 32 lanes: 16 lanes share a group.
// CHECK-LABEL: mlafix.kernel @quantize_dense(
// CHECK-SAME: guards = [#mlafix.guard<align, args = [0, 2], bytes = 16>
// CHECK-SAME: layout = <lanes = 32, packs = 2, pack = 8, rows = 8>
// CHECK-COUNT-2: vector.load %x[{{.*}}vector<8xbf16>
// CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c1_i32
// CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c8_i32
// CHECK-NOT: %c16_i32, %c31_i32
// CHECK: %[[G:.*]] = arith.divui %[[LANE:.*]], %c16
// CHECK: %[[AT:.*]] = arith.remui %[[LANE]], %c16
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[AT]], %c0
// CHECK: scf.if %[[FIRST]]
// CHECK-NEXT: vector.store %{{.*}}, %s[%{{.*}}, %[[G]]] {alignment = 4 : i64} : {{.*}}vector<1xf32>
// In the code version without guards, a pack has one element, so four of the eight warps share a group.
// CHECK-LABEL: mlafix.kernel @quantize_any(
// CHECK-SAME: lanes = 256, packs = 2, pack = 1
// CHECK: %c16_i32, %c31_i32
// CHECK: %[[WARP:.*]] = arith.divui %{{.*}}, %c32
// CHECK: nvvm.barrier
// CHECK: %[[MINE:.*]] = arith.divui %[[WARP]], %c4
// CHECK: arith.muli %[[MINE]], %c8
// CHECK-COUNT-8: memref.load %alloca
// CHECK: nvvm.barrier

// The 12 packs of a group are distributed over 16 lanes, of which the last 4 are idle.
// ODD-LABEL: mlafix.kernel @quantize_dense(
// ODD-SAME: lanes = 32, packs = 2, pack = 8
// ODD: %[[GROUP:.*]] = arith.divui %[[PLACE:.*]], %c128
// ODD: %[[WITHIN:.*]] = arith.remui %[[PLACE]], %c128
// ODD: %[[BEFORE:.*]] = arith.muli %[[GROUP]], %c96
// ODD: arith.addi %[[BEFORE]], %[[WITHIN]]
// ODD: arith.cmpi ult, %[[WITHIN]], %c96
// ODD: vector.maskedload %x
// ODD: %c8_i32, %c31_i32
// ODD-NOT: %c16_i32, %c31_i32
// ODD-LABEL: mlafix.kernel @quantize_fast(

// All lanes share each group, so each lane holds all elements of the row with one element per group. The first lane
// stores them.
// WIDE-LABEL: mlafix.kernel @quantize_dense(
// WIDE-SAME: lanes = 64, packs = 4, pack = 8
// WIDE: arith.cmpi eq, %[[LANE:.*]], %c0 : index
// WIDE: vector.store %{{.*}}, %s[%{{.*}}, %c0]
// WIDE: vector.store %{{.*}}, %s[%{{.*}}, %c1]

// With loopPacks=8, the registers of a CPU are taken to hold the eight packs of the row, so there is no loop.
// CPU-LABEL: mlafix.kernel @quantize_any(
// CPU: vector.store %[[S0:.*]], %s[%{{.*}}, %c0] {{.*}}vector<1xf32>
// CPU: vector.store %[[S1:.*]], %s[%{{.*}}, %c1] {{.*}}vector<1xf32>

// A loop over the packs gives four partial results per group, and two rounds combine them. A loop over the groups and
// another over the packs follow.
// LOOP-LABEL: mlafix.kernel @quantize_any(
// LOOP-DAG: %[[PARTIALS:.*]] = memref.alloca() : memref<80xf32>
// LOOP-DAG: %[[SCALES:.*]] = memref.alloca() : memref<20xf32>
// LOOP: scf.for %{{.*}} = %c0 to %c1280 step %c16
// LOOP: memref.store %{{.*}}, %[[PARTIALS]]
// LOOP: scf.for %{{.*}} = %c0 to %c40 step %c1
// LOOP: scf.for %{{.*}} = %c0 to %c20 step %c1
// LOOP: scf.for %[[I:.*]] = %c0 to %c20 step %c1
// LOOP: vector.load %[[PARTIALS]][%[[I]]] {{.*}}vector<1xf32>
// LOOP: vector.store %{{.*}}, %[[SCALES]][%[[I]]]
// LOOP: vector.store %{{.*}}, %s[%{{.*}}, %[[I]]]
// LOOP: scf.for %[[J:.*]] = %c0 to %c1280 step %c16
// LOOP: %[[G:.*]] = arith.divui %[[J]], %c64
// LOOP: vector.load %[[SCALES]][%[[G]]]

// PTX: ld.global.v4.b32
// PTX: ld.global.v4.b32
// PTX-COUNT-8: shfl.sync.bfly
// PTX-NOT: shfl
// PTX: st.global.v4.b32
// PTX: st.global.v4.b32
mlafix.kernel @quantize(
    %q: !rows {mlafix.dims = ["n", "(G K)"], mlafix.access = "write"},
    %s: !each {mlafix.dims = ["n", "G"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "(G K)"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> tensor<?xf32, #mlafix.dim<"G" x "K">>
    %m = mlafix.reduce max %v : tensor<?xf32, #mlafix.dim<"G" x "K">> -> tensor<?xf32, #mlafix.dim<"G">>
    %e = arith.mulf %m, %m : tensor<?xf32, #mlafix.dim<"G">>
    mlafix.store %e, %s[%t] : tensor<?xf32, #mlafix.dim<"G">>, !each
    %b = mlafix.broadcast %e : tensor<?xf32, #mlafix.dim<"G">> -> tensor<?xf32, #mlafix.dim<"G" x "K">>
    %r = arith.mulf %v, %b : tensor<?xf32, #mlafix.dim<"G" x "K">>
    mlafix.store %r, %q[%t] : tensor<?xf32, #mlafix.dim<"G" x "K">>, !rows
  }
}
