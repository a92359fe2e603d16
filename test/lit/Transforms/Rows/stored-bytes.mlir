// Bytes are stored from any number, saturating: f32 is rounded to nearest even by an addition, NaN is 0.
// RUN: %mlafix-opt %s --target=x86-64-v3 --emit=distributed -o - | FileCheck %s
// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=PTX
!i8s = memref<?x16xi8, strided<[?, 1], offset: ?>>
!u8s = memref<?x16xui8, strided<[?, 1], offset: ?>>
!f32s = memref<?x16xf32, strided<[?, 1], offset: ?>>
!i32s = memref<?x16xi32, strided<[?, 1], offset: ?>>
// CHECK-DAG: %[[MAGIC:.*]] = arith.constant dense<0x4B400000> : vector<16xf32>
// CHECK-DAG: %[[LOW:.*]] = arith.constant dense<-1.280000e+02> : vector<16xf32>
// CHECK-DAG: %[[HIGH:.*]] = arith.constant dense<1.270000e+02> : vector<16xf32>
// CHECK-DAG: %[[MOST:.*]] = arith.constant dense<255> : vector<16xi32>
// PTX: setp.num.f32
// The sum's low byte has the integer, too, but ptxas does not take it for that.
// PTX: add.rn.f32 {{.*}}, 0f4B400000
// PTX: cvt.rzi.s32.f32
// PTX: st.global.b32
// PTX: min.s32
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
