// ptxas (12.9 to 13.4) fuses max(x, 0), the conversion to i32 and the byte pack into F2IP.RELU, an instruction that is
// illegal on an H100. To prevent this, the compiler adds a minimum that changes no byte. Bytes that do not come from
// such a maximum get no minimum.

// RUN: %mlafix-opt %s --kernel=rectified --specialize=D=128 --target=sm_90 --emit=ptx | FileCheck %s
// RUN: %mlafix-opt %s --kernel=scaled --specialize=D=128 --target=sm_90 --emit=ptx | FileCheck %s --check-prefix=PLAIN
// CHECK: .entry rectified
// CHECK: max.{{.*}}f32 %[[POSITIVE:.*]], %{{.*}}, 0f00000000;
// CHECK: min.NaN.f32 %[[BOUNDED:.*]], %{{.*}}, 0f437F0000;
// CHECK: cvt.rni.s32.f32
// CHECK: cvt.pack.sat.u8.s32.b32
// PLAIN: .entry scaled
// PLAIN-NOT: min.NaN.f32
// PLAIN: cvt.pack.sat.u8.s32.b32
// PLAIN-NOT: min.NaN.f32

mlafix.kernel @rectified(
    %y: memref<?x?xui8, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %y, %c0 : memref<?x?xui8, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %row = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
    %zeros = mlafix.splat %zero : f32 -> tensor<?xf32, #mlafix.dim<"D">>
    %positive = arith.maximumf %row, %zeros : tensor<?xf32, #mlafix.dim<"D">>
    mlafix.store %positive, %y[%t] : tensor<?xf32, #mlafix.dim<"D">>, memref<?x?xui8, strided<[?, 1], offset: ?>>
  }
}

mlafix.kernel @scaled(
    %y: memref<?x?xui8, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %scale: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?x?xui8, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %row = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
    %scales = mlafix.splat %scale : f32 -> tensor<?xf32, #mlafix.dim<"D">>
    %scaled = arith.mulf %row, %scales : tensor<?xf32, #mlafix.dim<"D">>
    mlafix.store %scaled, %y[%t] : tensor<?xf32, #mlafix.dim<"D">>, memref<?x?xui8, strided<[?, 1], offset: ?>>
  }
}
