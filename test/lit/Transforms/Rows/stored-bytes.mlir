// A store of f32 or i32 to i8 or u8 saturates. On a CPU, NaN becomes 0, and f32 is rounded to the nearest integer, ties
// to even, by adding and subtracting a constant. GPUs have one instruction that rounds f32, and one that saturates and
// packs two integers.
// RUN: %mlafix-opt %s --target=x86-64-v3 --emit=distributed -o - | FileCheck %s
// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: %mlafix-opt %s --target=sm_75 --emit=ptx -o - | FileCheck %s --check-prefix=SM75
// SM75: .version 6.5
!i8s = memref<?x16xi8, strided<[?, 1], offset: ?>>
!u8s = memref<?x16xui8, strided<[?, 1], offset: ?>>
!f32s = memref<?x16xf32, strided<[?, 1], offset: ?>>
!i32s = memref<?x16xi32, strided<[?, 1], offset: ?>>
// CHECK-DAG: %[[MAGIC:.*]] = arith.constant dense<0x4B400000> : vector<16xf32>
// CHECK-DAG: %[[LOW:.*]] = arith.constant dense<-1.280000e+02> : vector<16xf32>
// CHECK-DAG: %[[HIGH:.*]] = arith.constant dense<1.270000e+02> : vector<16xf32>
// CHECK-DAG: %[[MOST:.*]] = arith.constant dense<255> : vector<16xi32>
// PTX-LABEL: .entry k_dense
// PTX: ld.global.v4.b32 {%[[A:r[0-9]+]], %[[B:r[0-9]+]], %[[C:r[0-9]+]], %[[D:r[0-9]+]]}
// PTX-DAG: cvt.rni.s32.f32 %[[RD:r[0-9]+]], %[[D]];
// PTX-DAG: cvt.rni.s32.f32 %[[RC:r[0-9]+]], %[[C]];
// PTX: cvt.pack.sat.s8.s32.b32 %[[UPPER:r[0-9]+]], %[[RD]], %[[RC]], %r
// PTX-DAG: cvt.rni.s32.f32 %[[RB:r[0-9]+]], %[[B]];
// PTX-DAG: cvt.rni.s32.f32 %[[RA:r[0-9]+]], %[[A]];
// PTX: cvt.pack.sat.s8.s32.b32 %[[WORD:r[0-9]+]], %[[RB]], %[[RA]], %[[UPPER]];
// PTX: st.global.b32 {{.*}}, %[[WORD]];
// PTX-NOT: {{min|max}}.s32
// PTX-COUNT-2: cvt.pack.sat.u8.s32.b32
// PTX: st.global.b32
mlafix.kernel @k(%a: !i8s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %b: !u8s {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                 %x: !f32s {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %i: !i32s {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !f32s
  mlafix.forall (%t) in (%n) {
    // CHECK: %[[X:.*]] = vector.load %x
    %v = mlafix.load %x[%t] : !f32s -> tensor<16xf32, #mlafix.dim<16>>
    // CHECK: %[[NAN:.*]] = arith.cmpf uno, %[[X]], %[[X]]
    // CHECK: %[[N:.*]] = arith.select %[[NAN]], %{{.*}}, %[[X]]
    // CHECK: %[[L:.*]] = arith.minnumf %[[N]], %[[HIGH]]
    // CHECK: %[[C:.*]] = arith.maxnumf %[[L]], %[[LOW]]
    // CHECK: %[[S:.*]] = arith.addf %[[C]], %[[MAGIC]]
    // CHECK: %[[R:.*]] = arith.subf %[[S]], %[[MAGIC]]
    // CHECK: %[[W:.*]] = arith.fptosi %[[R]] : vector<16xf32> to vector<16xi32>
    // CHECK: arith.trunci %[[W]] : vector<16xi32> to vector<16xi8>
    mlafix.store %v, %a[%t] : tensor<16xf32, #mlafix.dim<16>>, !i8s
    %w = mlafix.load %i[%t] : !i32s -> tensor<16xi32, #mlafix.dim<16>>
    // CHECK: arith.minsi %{{.*}}, %[[MOST]]
    // CHECK: arith.maxsi
    // CHECK: arith.trunci %{{.*}} : vector<16xi32> to vector<16xi8>
    mlafix.store %w, %b[%t] : tensor<16xi32, #mlafix.dim<16>>, !u8s
  }
}
