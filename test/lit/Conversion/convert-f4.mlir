// Conversions of f4e2m1, of which two elements share a byte, use arithmetic on every target. Eight elements of a row
// become one word. NaN becomes 6, and magnitudes above 6 become 6: by a minimum and a maximum on a CPU, by a minimum of
// magnitudes on a GPU. A GPU computes the bits of an element as the minimum of three linear functions: of integers, or
// of floats if the target has arithmetic on pairs of f32.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-distribute),mlafix-to-nvvm,cse)" | FileCheck %s
// RUN: %mlafix-opt %s --kernel=narrow --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: %mlafix-opt %s --kernel=narrow --target=x86-64-v3 --emit=llvm -o - | FileCheck %s --check-prefix=CPU
// RUN: %mlafix-opt %s --kernel=wide --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=WIDE

!halves = memref<?x128xf4E2M1FN, strided<[?, 1], offset: ?>>
!rows = memref<?x128xbf16, strided<[?, 1], offset: ?>>
!numbers = memref<?x128xf32, strided<[?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>

// Dense rows are 64 bytes apart.
// CHECK-LABEL: llvm.func @narrow_dense
// A loaded NaN may be negative, so a minimum replaces it by 6 before the sign is read.
// CHECK: %[[POSITIVE:.*]] = arith.minnumf
// CHECK-NOT: arith.maxnumf
// CHECK: math.absf %[[POSITIVE]]
// CHECK: arith.minnumf
// CHECK-COUNT-2: arith.minsi
// CHECK-NOT: arith.min
// CHECK: nvvm.prmt
// CHECK-NOT: vector<8xf4E2M1FN>
// CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : vector<4xi8>, !llvm.ptr
// The code version for rows at any address moves a byte at a time.
// CHECK-LABEL: llvm.func @narrow_any
// CHECK: llvm.store %{{.*}} {alignment = 1 : i64} : vector<1xi8>, !llvm.ptr
// PTX-LABEL: .entry narrow_dense
// PTX: ld.global.v4.b32
// PTX-COUNT-16: min.f32
// PTX-COUNT-16: min.s32
// PTX-COUNT-6: prmt.b32
// PTX-NOT: max.f32
// PTX: shl.b64 %{{.*}}, 6;
// PTX-NOT: st.global.v
// PTX: st.global.b32
// PTX-LABEL: .entry narrow_fast
// CPU: store <{{4|8}} x i8>
// CPU-NOT: x i4>
mlafix.kernel @narrow(%out: !halves {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                      %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    mlafix.store %v, %out[%t] : !tile, !halves
  }
}

// The NaN that a multiplication gives is not negative, so the minimum of magnitudes is enough to make it 6.
// RUN: %mlafix-opt %s --kernel=product --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=PRODUCT
// RUN: %mlafix-opt %s --kernel=product --target=sm_100 --emit=ptx -o - | FileCheck %s --check-prefix=FLOATS
// FLOATS-LABEL: .entry product_dense
// FLOATS-COUNT-24: min.f32
// FLOATS-NOT: min.s32
// FLOATS-LABEL: .entry product_fast
// PRODUCT-LABEL: .entry product_dense
// PRODUCT-COUNT-8: min.f32 %{{.*}}, 0f40C00000;
// The second element of a word gets a different addend than the others. The addends then cancel in the word, so that
// no subtraction is needed.
// PRODUCT-COUNT-7: fma.rn.f32 %{{.*}}, 0f40000000, 0f4B000000;
// PRODUCT-NEXT: fma.rn.f32 %{{r[0-9]+}}, [[SECOND:%r[0-9]+]], 0f40000000, 0f4B500000;
// PRODUCT-COUNT-7: add.rn.f32 %{{.*}}, 0f4B000002;
// PRODUCT-NEXT: add.rn.f32 %{{r[0-9]+}}, [[SECOND]], 0f4B500002;
// PRODUCT-NEXT: fma.rn.f32 [[TWOS:%r[0-9]+]], [[SECOND]], 0f3F000000, 0f4B500004;
// PRODUCT-COUNT-7: fma.rn.f32 %{{.*}}, 0f3F000000, 0f4B000004;
// PRODUCT-COUNT-15: min.s32 %{{r[0-9]+}}, %{{r[0-9]+}}, %
// PRODUCT-NEXT: min.s32 [[CODE:%r[0-9]+]], %{{r[0-9]+}}, [[TWOS]]
// PRODUCT-NOT: min.
// PRODUCT-COUNT-6: prmt.b32 %{{.*}}, {{0xfbU|0x5410U}};
// PRODUCT: shl.b32 %{{r[0-9]+}}, [[CODE]], 4;
// PRODUCT-NOT: {{sub.s32|add.s32 .*, -?[0-9]+;}}
// PRODUCT-LABEL: .entry product_fast
mlafix.kernel @product(%out: !halves {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                       %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %scale: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %s = mlafix.splat %scale : f32 -> !tile
    %p = arith.mulf %v, %s : !tile
    mlafix.store %p, %out[%t] : !tile, !halves
  }
}

// The mask of a predicated load has one bit per byte, so it has half as many bits as the row has elements.
// CHECK-LABEL: llvm.func @wide_dense
// CHECK: llvm.intr.masked.load {{.*}} : (!llvm.ptr<1>, vector<2xi1>, vector<2xi8>) -> vector<2xi8>
// WIDE-LABEL: .entry wide_dense
// WIDE: ld.global.{{v2.b8|b16}}
// WIDE: st.global.v4.b32
// WIDE-LABEL: .entry wide_fast
mlafix.kernel @wide(%out: !numbers {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                    %x: !halves {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %p: i1) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !halves
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] if %p : !halves -> !tile
    mlafix.store %v, %out[%t] : !tile, !numbers
  }
}
