// Conversions from and to fp8 e5m2, which has infinities. A store clamps values to the finite range, since MLIR's folds
// of conversions do not clamp them. The lowering removes the clamp if the target's conversion saturates.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_89},mlafix.kernel(mlafix-distribute),mlafix-to-nvvm,cse)" | FileCheck %s --check-prefix=CONVERT
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64},mlafix.kernel(mlafix-distribute))" | FileCheck %s --check-prefix=BOUNDS
// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: %mlafix-opt %s --target=sm_80 --emit=ptx -o - | FileCheck %s --check-prefix=OLD
// RUN: %mlafix-opt %s --target=x86-64-v3 --emit=llvm -o - | FileCheck %s --check-prefix=CPU
!tile = tensor<4xf32, #mlafix.dim<4>>
!e5m2 = memref<?x4xf8E5M2, strided<[?, 1], offset: ?>>
// CONVERT-LABEL: llvm.func @both_ways_fast
// CONVERT: %[[PAIRS:.*]] = vector.bitcast %{{.*}} : vector<4xi8> to vector<2xi16>
// CONVERT: vector.extract %[[PAIRS]][0]
// CONVERT: %[[HALVES:.*]] = nvvm.convert.f8x2.to.f16x2 %{{.*}} : vector<2xi8>(f8E5M2) -> vector<2xf16>
// CONVERT: vector.extract %[[HALVES]][0]
// CONVERT-NOT: minimumf
// CONVERT: nvvm.convert.f32x2.to.f8x2 {{.*}} : vector<2xi8>(f8E5M2)
// CONVERT-NOT: maximumf
// PTX-LABEL: .entry both_ways_fast
// PTX: ld.global.{{v2.b16|b32}}
// PTX: cvt.rn.f16x2.e5m2x2
// PTX: cvt.rn.f16x2.e5m2x2
// PTX-NOT: min.NaN
// PTX: cvt.rn.satfinite.e5m2x2.f32
// PTX: cvt.rn.satfinite.e5m2x2.f32
// OLD-LABEL: .entry both_ways_fast
// OLD-NOT: e5m2x2
// OLD: st.global.b32
// BOUNDS: arith.minimumf %{{.*}}, %[[MOST:.*]] : vector<4xf32>
// BOUNDS: arith.maximumf
// BOUNDS: arith.truncf %{{.*}} : vector<4xf32> to vector<4xf8E5M2>
// CPU: load <4 x i8>
// CPU-NOT: call {{.*}}__
// CPU: store <4 x i8>
mlafix.kernel @both_ways(%out: !e5m2 {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                         %x: !e5m2 {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !e5m2
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !e5m2 -> !tile
    mlafix.store %v, %out[%t] : !tile, !e5m2
  }
}
