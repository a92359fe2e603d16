// The pass makes a kernel for each variant and writes the variant's layout on it. Packs have up to 16 bytes and divide
// D. The last variant has no guards.
// RUN: %mlafix-opt %s --split-input-file --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90})" | FileCheck %s

// The first variant is for the common call: rows are contiguous, and no output is an input.
// CHECK-LABEL: @d128_bf16_bf16_dense
// CHECK-SAME: %out: memref<?x16x128xbf16, strided<[2048, 128, 1], offset: ?>>
// CHECK-SAME: #mlafix.guard<max_rows, value = 134217727>
// CHECK-SAME: #mlafix.guard<distinct, args = [0, 1]>
// CHECK-SAME: #mlafix.guard<stride, arg = 0, dim = 0, value = 2048>, #mlafix.guard<stride, arg = 0, dim = 1, value = 128>, #mlafix.guard<stride, arg = 1, dim = 0, value = 2048>, #mlafix.guard<stride, arg = 1, dim = 1, value = 128>]
// CHECK-SAME: layout = <lanes = 16, packs = 1, pack = 8, rows = 16>
// CHECK-LABEL: @d128_bf16_bf16_fast
// CHECK-SAME: %out: memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>>
// CHECK-SAME: #mlafix.guard<max_rows, value = 134217727>
// CHECK-SAME: layout = <lanes = 16, packs = 1, pack = 8, rows = 16>
// CHECK-LABEL: @d128_bf16_bf16_any
// CHECK-SAME: guards = [], plan = #mlafix.plan<layout = <lanes = {{[0-9]+}}, packs = {{[0-9]+}}, pack = 1,
mlafix.kernel @d128_bf16_bf16(
    %out: memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>>
  %H = memref.dim %out, %c1 : memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<128xf32, #mlafix.dim<128>>
    mlafix.store %v, %out[%t, %h] : tensor<128xf32, #mlafix.dim<128>>, memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>>
  }
}

!rows = memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>>
!scalars = memref<?x16xf32, strided<[?, ?], offset: ?>>

// Calls in place have their own variant, with two packs per lane and blocks of 128 threads. A guard of the variants
// `dense` and `place` requires that tensors of scalars with the same dims have the same strides. The guard names
// mandatory tensors before optional ones.
// CHECK-LABEL: @scaled_dense
// CHECK-SAME: #mlafix.guard<same_strides, args = [3, 1]>]
// CHECK-SAME: layout = <lanes = 16, packs = 1, pack = 8, rows = 16>
// CHECK-LABEL: @scaled_place
// CHECK-NOT: distinct
// CHECK-SAME: value = 2048>
// CHECK-SAME: #mlafix.guard<same_strides, args = [3, 1]>]
// CHECK-SAME: layout = <lanes = 8, packs = 2, pack = 8, rows = 16>
// CHECK-LABEL: @scaled_fast
// CHECK-NOT: same_strides
// CHECK-LABEL: @scaled_any
mlafix.kernel @scaled(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %out_scale: !scalars {mlafix.dims = ["n", "H"], mlafix.access = "write", mlafix.optional},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
    %scale: !scalars {mlafix.dims = ["n", "H"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : !rows -> tensor<128xf32, #mlafix.dim<128>>
    %s = mlafix.load %scale[%t, %h] : !scalars -> f32
    mlafix.store %v, %out[%t, %h] : tensor<128xf32, #mlafix.dim<128>>, !rows
    mlafix.store %s, %out_scale[%t, %h] : f32, !scalars
  }
}

// -----

// The guards name the arguments that are moved in packs. The pass also writes the target and the kernel's signature to
// the module.
// CHECK: module attributes {
// CHECK-SAME: mlafix.signature = {aliases = {{\[}}[0, 1]{{\]}}
// CHECK-SAME: name = "signature"
// CHECK-SAME: mlafix.target = "sm_90"
// CHECK: guards = [#mlafix.guard<align, args = [0, 1], bytes = 16>, #mlafix.guard<max_rows, value = 134217727>]
mlafix.kernel @signature(
    %out: memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>>
  %H = memref.dim %out, %c1 : memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<128xf32, #mlafix.dim<128>>
    mlafix.store %v, %out[%t, %h] : tensor<128xf32, #mlafix.dim<128>>, memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>>
  }
}
