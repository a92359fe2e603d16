// A batch of rows on a CPU computes the scalars for all indices of the inner extents if they are few and known, and if
// the buffers for the scalars fit the first cache. Rows of tensors that exceed the caches are prefetched.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3})" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3 machine=stripRows=8,aheadBytes=4096})" | FileCheck %s --check-prefix=EIGHT
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3 machine=batchBytes=512})" | FileCheck %s --check-prefix=BYTES
// For a GPU, there is nothing of this to decide.
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 plan=strip_rows=4})" 2>&1 | FileCheck %s --check-prefix=STRIP
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 plan=ahead_bytes=4})" 2>&1 | FileCheck %s --check-prefix=AHEAD
// CHECK: @scale_streamed({{.*}}, strip_rows = 48, ahead_bytes = 2048>
// CHECK: @scale_apart({{.*}}, strip_rows = 48>
// CHECK: @open_any({{.*}}, strip_rows = 128>
// EIGHT: @scale_streamed({{.*}}, strip_rows = 8, ahead_bytes = 4096>
// BYTES: @scale_streamed({{.*}}, strip_rows = 6, ahead_bytes = 2048>
// BYTES: @open_any({{.*}}, strip_rows = 8>
// STRIP: error: expected 'strip_rows' to be 1 for a GPU, which has no batches of rows, got 4
// AHEAD: error: expected 'ahead_bytes' to be 0 for a GPU, which has no batches of rows, got 4
!rows = memref<?x?x32xf32, strided<[?, ?, 1], offset: ?>>
!scalars = memref<?x?xf32, strided<[?, ?], offset: ?>>
!tile = tensor<32xf32, #mlafix.dim<32>>
mlafix.kernel @scale(%out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
                     %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
                     %s: !scalars {mlafix.dims = ["H", "n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c48 = arith.constant 48 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %c48) {
    %f = mlafix.load %s[%h, %t] : !scalars -> f32
    %e = math.exp2 %f : f32
    %w = mlafix.splat %e : f32 -> !tile
    %v = mlafix.load %x[%t, %h] : !rows -> !tile
    %m = arith.mulf %v, %w : !tile
    mlafix.store %m, %out[%t, %h] : !tile, !rows
  }
}

mlafix.kernel @open(%out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
                    %s: !scalars {mlafix.dims = ["H", "n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %h = memref.dim %out, %c1 : !rows
  mlafix.forall (%t, %j) in (%n, %h) {
    %f = mlafix.load %s[%j, %t] : !scalars -> f32
    %e = math.exp2 %f : f32
    %w = mlafix.splat %e : f32 -> !tile
    mlafix.store %w, %out[%t, %j] : !tile, !rows
  }
}
