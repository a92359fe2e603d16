// Conversions between fp8 and f32 (N7 in docs/Dialect.md) use NVIDIA's instructions if the target has them, and integer
// arithmetic elsewhere. The narrowing instruction makes a pair of bytes of two numbers. The first number becomes the
// upper byte. Pairs are not split into bytes, since ptxas 13.0 crashes on words with a half that was never written.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_89},mlafix.kernel(mlafix-distribute),mlafix-to-nvvm,cse)" | FileCheck %s --check-prefix=CONVERT
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_80},mlafix.kernel(mlafix-distribute),mlafix-to-nvvm,cse)" | FileCheck %s --check-prefix=INTEGERS
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64},mlafix.kernel(mlafix-distribute),mlafix-to-cpu,cse)" | FileCheck %s --check-prefix=INTEGERS
// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: %mlafix-opt %s --target=sm_80 --emit=ptx -o - | FileCheck %s --check-prefix=OLD
// RUN: %mlafix-opt %s --target=x86-64-v3 --emit=llvm -o - | FileCheck %s --check-prefix=CPU

!bytes = memref<?x4xf8E4M3FN, strided<[?, 1], offset: ?>>
!rows = memref<?x4xf32, strided<[?, 1], offset: ?>>
!tile = tensor<4xf32, #mlafix.dim<4>>

// CONVERT-LABEL: llvm.func @quantize_fast
// CONVERT-DAG: %[[A:.*]] = vector.extract %[[V:.*]][0]
// CONVERT-DAG: %[[B:.*]] = vector.extract %[[V]][1]
// CONVERT: %[[PAIR:.*]] = nvvm.convert.f32x2.to.f8x2 %[[B]], %[[A]] {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : vector<2xi8>(f8E4M3FN)
// CONVERT: vector.bitcast %[[PAIR]] : vector<2xi8> to vector<1xi16>
// CONVERT: %[[PAIRS:.*]] = vector.from_elements {{.*}} : vector<2xi16>
// CONVERT: vector.bitcast %[[PAIRS]] : vector<2xi16> to vector<4xi8>
// CONVERT: llvm.store {{.*}} : vector<4xi8>
// INTEGERS-NOT: nvvm.convert
// INTEGERS: arith.trunci {{.*}} to vector<{{[14]}}xi8>
// PTX: cvt.rn.satfinite.e4m3x2.f32
// PTX: cvt.rn.satfinite.e4m3x2.f32
// PTX-NOT: prmt
// PTX: st.global.{{v2.b16|b32}}
// OLD-NOT: cvt.rn.satfinite.e4m3x2
// OLD: st.global.b32
// CPU: store <4 x i8>
// CPU-NOT: call {{.*}}fp8
mlafix.kernel @quantize(%out: !bytes {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                        %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    mlafix.store %v, %out[%t] : !tile, !bytes
  }
}

// If mlafix-convert-fp8 runs without the lowering to NVVM, it casts the bytes that it computes to the element type in
// memory.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-distribute,mlafix-convert-fp8))" | FileCheck %s --check-prefix=ALONE
// ALONE-LABEL: mlafix.kernel @quantize_fast
// ALONE-NOT: arith.truncf
// ALONE-COUNT-2: nvvm.convert.f32x2.to.f8x2
// ALONE: %[[BYTES:.*]] = builtin.unrealized_conversion_cast %{{.*}} : vector<4xi8> to vector<4xf8E4M3FN>
// ALONE: vector.store %[[BYTES]], %out
