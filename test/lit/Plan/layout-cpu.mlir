// A CPU uses one lane per row and sixteen floats at once. Stores bypass the caches if the caches cannot hold the
// output. The scalars of sixteen rows are computed at once if no output is an input and there is enough to compute.
// RUN: %mlafix-opt %s --split-input-file --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3})" | FileCheck %s

!rows = memref<?x16x96xbf16, strided<[?, ?, 1], offset: ?>>
!scalars = memref<?x16xf32, strided<[?, ?], offset: ?>>

// A call may be in place: @copy_any accepts it, @copy_streamed does not. A code version @copy_apart for calls out of
// place would only serve to compute scalars in batches. A copy has no scalars, so there is none.
// CHECK: @copy_streamed
// CHECK-SAME: guards = [#mlafix.guard<align, args = [0], bytes = 16>, #mlafix.guard<beyond_cache, args = [0, 1]>, #mlafix.guard<distinct, args = [0, 1]>]
// CHECK-SAME: layout = <lanes = 1, packs = 6, pack = 16, rows = 1>
// CHECK-NOT: @copy_apart
// CHECK: @copy_any
// CHECK-SAME: guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 6, pack = 16, rows = 1>
// CHECK-NOT: @copy_
mlafix.kernel @copy(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : !rows -> tensor<96xf32, #mlafix.dim<96>>
    mlafix.store %v, %out[%t, %h] : tensor<96xf32, #mlafix.dim<96>>, !rows
  }
}

// CHECK: @scale_streamed
// CHECK-SAME: rows = 16>
// CHECK: @scale_apart
// CHECK-SAME: guards = [#mlafix.guard<distinct, args = [0, 1]>], plan = #mlafix.plan<layout = <lanes = 1, packs = 6, pack = 16, rows = 16>
// CHECK: @scale_any
// CHECK-SAME: guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 6, pack = 16, rows = 1>
// CHECK-NOT: @scale_
mlafix.kernel @scale(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
    %s: !scalars {mlafix.dims = ["n", "H"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : !rows -> tensor<96xf32, #mlafix.dim<96>>
    %f = mlafix.load %s[%t, %h] : !scalars -> f32
    %e = math.exp2 %f : f32
    %w = mlafix.splat %e : f32 -> tensor<96xf32, #mlafix.dim<96>>
    %r = arith.mulf %v, %w : tensor<96xf32, #mlafix.dim<96>>
    mlafix.store %r, %out[%t, %h] : tensor<96xf32, #mlafix.dim<96>>, !rows
  }
}

// The scalars of rows are not computed in batches, since the kernel loads and stores %s: a row might read what the
// scalars of another row wrote. No output can be an input, so one code version besides @running_streamed is enough.
// CHECK-NOT: rows = 16
// CHECK: @running_streamed
// CHECK-NOT: rows = 16
// CHECK: @running_any
// CHECK-NOT: rows = 16
mlafix.kernel @running(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %s: !scalars {mlafix.dims = ["n", "H"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %f = mlafix.load %s[%t, %h] : !scalars -> f32
    %e = math.exp2 %f : f32
    mlafix.store %e, %s[%t, %h] : f32, !scalars
    %w = mlafix.splat %e : f32 -> tensor<96xf32, #mlafix.dim<96>>
    mlafix.store %w, %out[%t, %h] : tensor<96xf32, #mlafix.dim<96>>, !rows
  }
}

// -----

!rows = memref<?x3xbf16, strided<[?, 1], offset: ?>>

// Packs of fewer than 16 bytes are stored through the caches.
// CHECK-NOT: _streamed
// CHECK: @narrow_any
mlafix.kernel @narrow(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %s: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %f = mlafix.load %s[%t] : memref<?xf32, strided<[?], offset: ?>> -> f32
    %w = mlafix.splat %f : f32 -> tensor<3xf32, #mlafix.dim<3>>
    mlafix.store %w, %out[%t] : tensor<3xf32, #mlafix.dim<3>>, !rows
  }
}

// -----

!rows = memref<?x96xbf16, strided<[?, 1], offset: ?>>

// Rows that were loaded are already in the caches, so stores to them do not bypass the caches.
// CHECK-NOT: _streamed
// CHECK: @negate_any
mlafix.kernel @negate(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> tensor<96xf32, #mlafix.dim<96>>
    %w = arith.negf %v : tensor<96xf32, #mlafix.dim<96>>
    mlafix.store %w, %x[%t] : tensor<96xf32, #mlafix.dim<96>>, !rows
  }
}

// -----

!rows = memref<?x16x96xbf16, strided<[?, ?, 1], offset: ?>>

// The updated tensor stays in the caches. Only stores to the other output bypass the caches.
// CHECK: @running_streamed
// CHECK-SAME: #mlafix.guard<beyond_cache, args = [0, 2]>
mlafix.kernel @running(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %sum: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "update"},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : !rows -> tensor<96xf32, #mlafix.dim<96>>
    %s = mlafix.load %sum[%t, %h] : !rows -> tensor<96xf32, #mlafix.dim<96>>
    %r = arith.addf %v, %s : tensor<96xf32, #mlafix.dim<96>>
    mlafix.store %r, %sum[%t, %h] : tensor<96xf32, #mlafix.dim<96>>, !rows
    mlafix.store %v, %out[%t, %h] : tensor<96xf32, #mlafix.dim<96>>, !rows
  }
}
