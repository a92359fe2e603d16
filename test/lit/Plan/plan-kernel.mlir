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

// If the lanes of a row never wait for each other, their number need not be a power of two. A row of 12 packs then has
// 12 lanes, and no lane is idle.
// CHECK-LABEL: @d96_bf16_bf16_dense
// CHECK-SAME: layout = <lanes = 12, packs = 1, pack = 8, rows = 24>
// CHECK-LABEL: @d96_bf16_bf16_fast
// CHECK-SAME: #mlafix.guard<max_rows, value = 536870911>
// CHECK-SAME: layout = <lanes = 4, packs = 3, pack = 8, rows = 64>
// CHECK-LABEL: @d96_bf16_bf16_any
// CHECK-SAME: guards = [], plan = #mlafix.plan<layout = <lanes = {{[0-9]+}}, packs = {{[0-9]+}}, pack = 1,
mlafix.kernel @d96_bf16_bf16(
    %out: memref<?x16x96xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: memref<?x16x96xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?x16x96xbf16, strided<[?, ?, 1], offset: ?>>
  %H = memref.dim %out, %c1 : memref<?x16x96xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : memref<?x16x96xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<96xf32, #mlafix.dim<96>>
    mlafix.store %v, %out[%t, %h] : tensor<96xf32, #mlafix.dim<96>>, memref<?x16x96xbf16, strided<[?, ?, 1], offset: ?>>
  }
}

// CHECK-LABEL: @d192_f16_f16_fast
// CHECK-SAME: #mlafix.guard<max_rows, value = 268435455>
// CHECK-SAME: layout = <lanes = 8, packs = 3, pack = 8, rows = 32>
// CHECK-LABEL: @d192_f16_f16_any
// CHECK-SAME: guards = [], plan = #mlafix.plan<layout = <lanes = {{[0-9]+}}, packs = {{[0-9]+}}, pack = 1,
mlafix.kernel @d192_f16_f16(
    %out: memref<?x16x192xf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: memref<?x16x192xf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?x16x192xf16, strided<[?, ?, 1], offset: ?>>
  %H = memref.dim %out, %c1 : memref<?x16x192xf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : memref<?x16x192xf16, strided<[?, ?, 1], offset: ?>> -> tensor<192xf32, #mlafix.dim<192>>
    mlafix.store %v, %out[%t, %h] : tensor<192xf32, #mlafix.dim<192>>, memref<?x16x192xf16, strided<[?, ?, 1], offset: ?>>
  }
}

// CHECK-LABEL: @d512_bf16_bf16_fast
// CHECK-SAME: #mlafix.guard<max_rows, value = 67108863>
// CHECK-SAME: layout = <lanes = 32, packs = 2, pack = 8, rows = 8>
// CHECK-LABEL: @d512_bf16_bf16_any
// CHECK-SAME: guards = [], plan = #mlafix.plan<layout = <lanes = {{[0-9]+}}, packs = {{[0-9]+}}, pack = 1,
mlafix.kernel @d512_bf16_bf16(
    %out: memref<?x16x512xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: memref<?x16x512xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?x16x512xbf16, strided<[?, ?, 1], offset: ?>>
  %H = memref.dim %out, %c1 : memref<?x16x512xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : memref<?x16x512xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<512xf32, #mlafix.dim<512>>
    mlafix.store %v, %out[%t, %h] : tensor<512xf32, #mlafix.dim<512>>, memref<?x16x512xbf16, strided<[?, ?, 1], offset: ?>>
  }
}

// CHECK-LABEL: @d576_bf16_bf16_fast
// CHECK-SAME: #mlafix.guard<max_rows, value = 67108863>
// CHECK-SAME: layout = <lanes = 32, packs = 3, pack = 8, rows = 8>
// CHECK-LABEL: @d576_bf16_bf16_any
// CHECK-SAME: guards = [], plan = #mlafix.plan<layout = <lanes = {{[0-9]+}}, packs = {{[0-9]+}}, pack = 1,
mlafix.kernel @d576_bf16_bf16(
    %out: memref<?x16x576xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: memref<?x16x576xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?x16x576xbf16, strided<[?, ?, 1], offset: ?>>
  %H = memref.dim %out, %c1 : memref<?x16x576xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : memref<?x16x576xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<576xf32, #mlafix.dim<576>>
    mlafix.store %v, %out[%t, %h] : tensor<576xf32, #mlafix.dim<576>>, memref<?x16x576xbf16, strided<[?, ?, 1], offset: ?>>
  }
}

// CHECK-LABEL: @d128_f32_f32_fast
// CHECK-SAME: #mlafix.guard<max_rows, value = 67108863>
// CHECK-SAME: layout = <lanes = 32, packs = 1, pack = 4, rows = 8>
// CHECK-LABEL: @d128_f32_f32_any
// CHECK-SAME: guards = [], plan = #mlafix.plan<layout = <lanes = {{[0-9]+}}, packs = {{[0-9]+}}, pack = 1,
mlafix.kernel @d128_f32_f32(
    %out: memref<?x16x128xf32, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: memref<?x16x128xf32, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?x16x128xf32, strided<[?, ?, 1], offset: ?>>
  %H = memref.dim %out, %c1 : memref<?x16x128xf32, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : memref<?x16x128xf32, strided<[?, ?, 1], offset: ?>> -> tensor<128xf32, #mlafix.dim<128>>
    mlafix.store %v, %out[%t, %h] : tensor<128xf32, #mlafix.dim<128>>, memref<?x16x128xf32, strided<[?, ?, 1], offset: ?>>
  }
}

// CHECK-LABEL: @d128_bf16_f32_fast
// CHECK-SAME: #mlafix.guard<max_rows, value = 134217727>
// CHECK-SAME: layout = <lanes = 16, packs = 2, pack = 4, rows = 16>
// CHECK-LABEL: @d128_bf16_f32_any
// CHECK-SAME: guards = [], plan = #mlafix.plan<layout = <lanes = {{[0-9]+}}, packs = {{[0-9]+}}, pack = 1,
mlafix.kernel @d128_bf16_f32(
    %out: memref<?x16x128xf32, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?x16x128xf32, strided<[?, ?, 1], offset: ?>>
  %H = memref.dim %out, %c1 : memref<?x16x128xf32, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<128xf32, #mlafix.dim<128>>
    mlafix.store %v, %out[%t, %h] : tensor<128xf32, #mlafix.dim<128>>, memref<?x16x128xf32, strided<[?, ?, 1], offset: ?>>
  }
}

// CHECK-LABEL: @d3_bf16_bf16_fast
// CHECK-SAME: #mlafix.guard<max_rows, value = 536870911>
// CHECK-SAME: layout = <lanes = 4, packs = 1, pack = 1, rows = 64>
// CHECK-LABEL: @d3_bf16_bf16_any
// CHECK-SAME: guards = [], plan = #mlafix.plan<layout = <lanes = {{[0-9]+}}, packs = {{[0-9]+}}, pack = 1,
mlafix.kernel @d3_bf16_bf16(
    %out: memref<?x16x3xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: memref<?x16x3xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?x16x3xbf16, strided<[?, ?, 1], offset: ?>>
  %H = memref.dim %out, %c1 : memref<?x16x3xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : memref<?x16x3xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<3xf32, #mlafix.dim<3>>
    mlafix.store %v, %out[%t, %h] : tensor<3xf32, #mlafix.dim<3>>, memref<?x16x3xbf16, strided<[?, ?, 1], offset: ?>>
  }
}

// CHECK-LABEL: @d1_f32_f32_fast
// CHECK-SAME: #mlafix.guard<max_rows, value = 2147483647>
// CHECK-SAME: layout = <lanes = 1, packs = 1, pack = 1, rows = 256>
// CHECK-LABEL: @d1_f32_f32_any
// CHECK-SAME: guards = [], plan = #mlafix.plan<layout = <lanes = {{[0-9]+}}, packs = {{[0-9]+}}, pack = 1,
mlafix.kernel @d1_f32_f32(
    %out: memref<?x16x1xf32, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: memref<?x16x1xf32, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?x16x1xf32, strided<[?, ?, 1], offset: ?>>
  %H = memref.dim %out, %c1 : memref<?x16x1xf32, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : memref<?x16x1xf32, strided<[?, ?, 1], offset: ?>> -> tensor<1xf32, #mlafix.dim<1>>
    mlafix.store %v, %out[%t, %h] : tensor<1xf32, #mlafix.dim<1>>, memref<?x16x1xf32, strided<[?, ?, 1], offset: ?>>
  }
}

// CHECK-LABEL: @d7168_bf16_bf16_fast
// CHECK-SAME: #mlafix.guard<max_rows, value = 4194303>
// CHECK-SAME: layout = <lanes = 512, packs = 2, pack = 8, rows = 1>
// CHECK-LABEL: @d7168_bf16_bf16_any
// CHECK-SAME: guards = [], plan = #mlafix.plan<layout = <lanes = {{[0-9]+}}, packs = {{[0-9]+}}, pack = 1,
mlafix.kernel @d7168_bf16_bf16(
    %out: memref<?x16x7168xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: memref<?x16x7168xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?x16x7168xbf16, strided<[?, ?, 1], offset: ?>>
  %H = memref.dim %out, %c1 : memref<?x16x7168xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : memref<?x16x7168xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<7168xf32, #mlafix.dim<7168>>
    mlafix.store %v, %out[%t, %h] : tensor<7168xf32, #mlafix.dim<7168>>, memref<?x16x7168xbf16, strided<[?, ?, 1], offset: ?>>
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
