// The kernel ABI: a pointer per tensor, and only the sizes and strides that are dynamic and used. A kernel that
// prefetches has additional parameters (here `local`). No pointer is noalias (N11 in docs/Dialect.md).
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-distribute),canonicalize,cse,mlafix-to-nvvm)" | FileCheck %s

!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>
!col = memref<?xf32, strided<[1], offset: ?>>

// CHECK-LABEL: llvm.func @k_fast(
// CHECK-SAME: %[[OUT:[a-z0-9]*]]: !llvm.ptr<1>, %[[N:[a-z0-9]*]]: i64, %[[S:[a-z0-9]*]]: i64, %[[X:[a-z0-9]*]]: !llvm.ptr<1>, %[[XS:[a-z0-9]*]]: i64, %[[L:[a-z0-9]*]]: !llvm.ptr<1>, %[[F:[a-z0-9]*]]: f32, %[[FLAG:[a-z0-9]*]]: i8, %{{[a-z0-9]*}}: i32)
// CHECK-SAME: mlafix.variant = #mlafix.variant<"k_fast"
// CHECK-SAME: params = [<pointer, arg = 0>, <size, arg = 0, dim = 0>, <stride, arg = 0, dim = 0>, <pointer, arg = 1>, <stride, arg = 1, dim = 0>, <pointer, arg = 2>, <scalar, arg = 3>, <scalar, arg = 4>, <local>]
// CHECK-SAME: nvvm.kernel, nvvm.minctasm = 8 : i32, nvvm.reqntid = array<i32: 256, 1, 1>
// CHECK-NOT: noalias
mlafix.kernel @k(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %lse: !col {mlafix.dims = ["n"], mlafix.access = "write", mlafix.optional},
    %factor: f32, %flag: i1, %unused: i32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // Offsets are computed in 64 bits (N13).
    // CHECK: %[[ROW:.*]] = arith.muli %{{.*}}, %[[XS]] : i64
    // CHECK: %[[OFFSET:.*]] = arith.addi %[[ROW]], %{{.*}} : i64
    // CHECK: %[[PTR:.*]] = llvm.getelementptr %[[X]][%[[OFFSET]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    // CHECK: llvm.load %[[PTR]] {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
    %v = mlafix.load %x[%t] : !rows -> tensor<64xf32, #mlafix.dim<64>>
    // CHECK: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"
    %r = math.rsqrt %factor : f32
    // e^x is the instruction's 2^x, corrected for the rounding error of its exponent (N10).
    // CHECK: %[[EXPONENT:.*]] = arith.mulf
    // CHECK: %[[T:.*]] = arith.select %{{.*}}, %{{.*}}, %[[EXPONENT]]
    // CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"
    // CHECK: %[[REST:.*]] = math.fma %[[T]], %{{.*}}, %{{.*}} : vector<4xf32>
    // CHECK: math.fma %{{.*}}, %[[REST]], %{{.*}} : vector<4xf32>
    %e = math.exp %v : tensor<64xf32, #mlafix.dim<64>>
    %s = mlafix.splat %r : f32 -> tensor<64xf32, #mlafix.dim<64>>
    %y = arith.mulf %e, %s : tensor<64xf32, #mlafix.dim<64>>
    mlafix.store %y, %out[%t] : tensor<64xf32, #mlafix.dim<64>>, !rows
    // A logarithm that must be accurate near 1 does not use the instruction lg2.
    // CHECK-NOT: lg2
    // CHECK: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
    // CHECK-NOT: lg2
    %log = math.log %factor : f32
    // CHECK: llvm.icmp "ne" %[[L]]
    mlafix.store %log, %lse[%t] if %flag : f32, !col
  }
}
