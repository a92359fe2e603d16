// Conversions of f8e8m0, whose values are exponents of f32, use integers on every target. A store clamps values, since
// MLIR's folds of conversions do not clamp them. The lowered conversion saturates, so the lowering removes the clamp. A
// row with one element per group may have any stride. A load whose predicate is false gives 0, which f8e8m0 cannot
// represent, so a select gives the 0 after the conversion to f32.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-group-rows),mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-distribute))" | FileCheck %s --check-prefix=BOUNDS
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-group-rows),mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-distribute),mlafix-to-nvvm,cse)" | FileCheck %s
// RUN: %mlafix-opt %s --kernel=powers --target=sm_100 --emit=ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: %mlafix-opt %s --kernel=powers --target=x86-64-v3 --emit=llvm -o - | FileCheck %s --check-prefix=CPU
// RUN: %mlafix-opt %s --kernel=divided --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=DIVIDED

!tile = tensor<4xf32, #mlafix.dim<4>>
!powers = memref<?x4xf8E8M0FNU, strided<[?, 1], offset: ?>>

// BOUNDS-LABEL: mlafix.kernel @powers_fast
// BOUNDS: %[[X:.*]] = arith.extf %{{.*}} : vector<4xf8E8M0FNU> to vector<4xf32>
// BOUNDS: arith.select %{{.*}}, %[[X]]
// BOUNDS: %[[LOWER:.*]] = arith.minimumf
// BOUNDS: %[[BOUNDED:.*]] = arith.maximumf %[[LOWER]]
// BOUNDS: arith.truncf %[[BOUNDED]] : vector<4xf32> to vector<4xf8E8M0FNU>
// CHECK-LABEL: llvm.func @powers_fast
// CHECK-NOT: minimumf
// CHECK: arith.shrui %{{.*}} : vector<4xi32>
// CHECK: arith.minui
// CHECK: arith.trunci %{{.*}} : vector<4xi32> to vector<4xi8>
// PTX-LABEL: .entry powers_fast
// PTX-NOT: min.NaN
// PTX-COUNT-4: shr.u32
// PTX: st.global
// CPU: load <4 x i8>
// CPU-NOT: call {{.*}}__
// CPU: store <4 x i8>
mlafix.kernel @powers(%out: !powers {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                      %x: !powers {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %p: i1) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !powers
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] if %p : !powers -> !tile
    %twice = arith.addf %v, %v : !tile
    mlafix.store %twice, %out[%t] : !tile, !powers
  }
}

!groups = memref<?x8xf32, strided<[?, 1], offset: ?>>
!scales = memref<?x2xf8E8M0FNU, strided<[?, ?], offset: ?>>
!row = tensor<8xf32, #mlafix.dim<2 x 4>>
!group = tensor<2xf32, #mlafix.dim<2>>

// CHECK-LABEL: llvm.func @scales_fast
// CHECK: %[[BYTE:.*]] = arith.trunci %{{.*}} : {{(vector<1x)?}}i32{{>?}} to {{(vector<1x)?}}i8
// CHECK: llvm.store %{{.*}} : i8
mlafix.kernel @scales(%scales: !scales {mlafix.dims = ["n", "G"], mlafix.access = "write"},
                      %x: !groups {mlafix.dims = ["n", "(2 4)"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !groups
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !groups -> !row
    %largest = mlafix.reduce max %v : !row -> !group
    mlafix.store %largest, %scales[%t] : !group, !scales
  }
}

// A scale divides a row and is stored. The scale's byte is stored without a conversion, and the scale's inverse is
// computed from an i32. The scale is at least 1e-10, so no comparison is needed for the least power, 2^-127.
// DIVIDED-LABEL: .entry divided_fast
// DIVIDED: min.u32 %[[CODE:.*]], %{{.*}}, 254;
// DIVIDED-NOT: setp.lt.s32
// DIVIDED-NOT: min.u32
// DIVIDED-NOT: .s16
// DIVIDED: sub.s32 %{{.*}}, 254,
// DIVIDED-NOT: min.u32
// DIVIDED-NOT: .s16
// DIVIDED: st.global.b8
// DIVIDED: ret;
mlafix.kernel @divided(%out: !groups {mlafix.dims = ["n", "(2 4)"], mlafix.access = "write"},
                       %scales: !scales {mlafix.dims = ["n", "G"], mlafix.access = "write"},
                       %x: !groups {mlafix.dims = ["n", "(2 4)"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !groups
  %least = arith.constant 1.0e-10 : f32
  %bounds = mlafix.splat %least : f32 -> !group
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !groups -> !row
    %largest = mlafix.reduce max %v : !row -> !group
    %bounded = arith.maximumf %largest, %bounds : !group
    %power = arith.truncf %bounded : !group to tensor<2xf8E8M0FNU, #mlafix.dim<2>>
    %scale = arith.extf %power : tensor<2xf8E8M0FNU, #mlafix.dim<2>> to !group
    %all = mlafix.broadcast %scale : !group -> !row
    %q = arith.divf %v, %all : !row
    mlafix.store %q, %out[%t] : !row, !groups
    mlafix.store %scale, %scales[%t] : !group, !scales
  }
}
