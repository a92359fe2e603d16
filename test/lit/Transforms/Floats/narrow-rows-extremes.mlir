// The extreme (maximum or minimum) of a row of 16-bit elements is computed from the narrow elements, two at once. Later
// uses of the row widen it again, one pack after the other if the row has many packs.
// RUN: %mlafix-opt %s --kernel=softmax --target=sm_90 --emit=ptx --variant=dense | FileCheck %s
// RUN: %mlafix-opt %s --kernel=softmax --target=sm_80 --emit=ptx --variant=dense | FileCheck %s
// RUN: %mlafix-opt %s --kernel=softmax --target=sm_75 --emit=ptx --variant=dense | FileCheck %s --check-prefix=WIDE
// RUN: %mlafix-opt %s --kernel=softmax --target=sm_100 --emit=ptx --variant=dense | FileCheck %s --check-prefix=WIDE
// RUN: %mlafix-opt %s --kernel=softmax --target=sm_90 --emit=layout | FileCheck %s --check-prefix=PLAN
// RUN: %mlafix-opt %s --kernel=softmax --target=sm_100 --emit=layout | FileCheck %s --check-prefix=NARROW
// RUN: %mlafix-opt %s --kernel=softmax --target=sm_90 --emit=ptx --variant=dense --mlafix-plan=packs_in_turn=no | FileCheck %s --check-prefix=TOGETHER
// PLAN: @softmax_dense({{.*}}packs = 4, pack = 8, {{.*}}, packs_in_turn = yes>
// PLAN: @softmax_any({{.*}}packs = 8, pack = 1,
// PLAN-NOT: packs_in_turn
// NARROW-NOT: packs_in_turn

!rows = memref<?x8192xbf16, strided<[?, 1], offset: ?>>
!halves = memref<?x512xf16, strided<[?, 1], offset: ?>>
!longs = memref<?x32000xbf16, strided<[?, 1], offset: ?>>
!col = memref<?xf32, strided<[1], offset: ?>>
!icol = memref<?xi32, strided<[1], offset: ?>>
!tile = tensor<8192xf32, #mlafix.dim<8192>>
!short = tensor<512xf32, #mlafix.dim<512>>
!long = tensor<32000xf32, #mlafix.dim<32000>>

// CHECK-LABEL: .entry softmax_dense(
// CHECK-NOT: shl.b32 %{{r[0-9]+}}, %{{r[0-9]+}}, 16;
// CHECK: max.NaN.bf16x2
// CHECK: shfl.sync
// CHECK-NOT: max.NaN.bf16x2
// CHECK: shl.b32 %{{r[0-9]+}}, %{{r[0-9]+}}, 16;
// Each pack's exponentials come before the next pack is widened.
// CHECK: ex2.approx
// CHECK: shl.b32 %{{r[0-9]+}}, %{{r[0-9]+}}, 16;
// CHECK: ex2.approx
// If the plan says otherwise, all packs are widened first.
// TOGETHER-LABEL: .entry softmax_dense(
// TOGETHER-COUNT-16: shl.b32 %{{r[0-9]+}}, %{{r[0-9]+}}, 16;
// TOGETHER: ex2.approx
// TOGETHER-NOT: shl.b32 %{{r[0-9]+}}, %{{r[0-9]+}}, 16;
// WIDE-LABEL: .entry softmax_dense(
// WIDE-NOT: max.NaN.bf16
// WIDE: ex2.approx
mlafix.kernel @softmax(%y: !rows {mlafix.dims = ["n", "8192"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "8192"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %most = mlafix.reduce max %v : !tile
    %mosts = mlafix.splat %most : f32 -> !tile
    %below = arith.subf %v, %mosts : !tile
    %powers = math.exp %below : !tile
    %sum = mlafix.reduce add %powers : !tile
    %sums = mlafix.splat %sum : f32 -> !tile
    %parts = arith.divf %powers, %sums : !tile
    mlafix.store %parts, %y[%t] : !tile, !rows
  }
}

// The largest magnitude of f16, and a minimum.
// RUN: %mlafix-opt %s --kernel=magnitudes --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=MAGNITUDES
// MAGNITUDES-LABEL: .entry magnitudes_dense(
// MAGNITUDES: abs.f16x2
// MAGNITUDES: max.NaN.f16x2
// MAGNITUDES-COUNT-2: cvt.f32.f16
// MAGNITUDES: shfl.sync
// MAGNITUDES: min.NaN.f16x2
// MAGNITUDES-COUNT-2: cvt.f32.f16
// MAGNITUDES-NOT: cvt.f32.f16
mlafix.kernel @magnitudes(%most: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %least: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !halves {mlafix.dims = ["n", "512"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %most, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !halves -> !short
    %sizes = math.absf %v : !short
    %a = mlafix.reduce max %sizes : !short
    %b = mlafix.reduce min %v : !short
    mlafix.store %a, %most[%t] : f32, !col
    mlafix.store %b, %least[%t] : f32, !col
  }
}

// The largest magnitude of bf16.
// RUN: %mlafix-opt %s --kernel=largest --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=LARGEST
// LARGEST-LABEL: .entry largest_dense(
// LARGEST-NOT: abs.{{(ftz.)?}}f32
// LARGEST-COUNT-8: abs.bf16x2
// LARGEST: max.NaN.bf16x2
// LARGEST-NOT: abs.{{(ftz.)?}}f32
// LARGEST: shfl.sync
!thousands = memref<?x1000xbf16, strided<[?, 1], offset: ?>>
!thousand = tensor<1000xf32, #mlafix.dim<1000>>
mlafix.kernel @largest(%most: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !thousands {mlafix.dims = ["n", "1000"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %most, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !thousands -> !thousand
    %sizes = math.absf %v : !thousand
    %a = mlafix.reduce max %sizes : !thousand
    mlafix.store %a, %most[%t] : f32, !col
  }
}

// A minimum of each element and a number is not the extreme of a whole row. It stays in f32, in which every NaN becomes
// the same.
// RUN: %mlafix-opt %s --kernel=clamped --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=CLAMPED
// CLAMPED-LABEL: .entry clamped_dense(
// CLAMPED-NOT: NaN.f16x2
// CLAMPED: st.global
!floats = memref<?x512xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @clamped(%y: !floats {mlafix.dims = ["n", "512"], mlafix.access = "write"}, %x: !halves {mlafix.dims = ["n", "512"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !floats
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !halves -> !short
    %one = arith.constant 1.0 : f32
    %ones = mlafix.splat %one : f32 -> !short
    %w = arith.minimumf %v, %ones : !short
    mlafix.store %w, %y[%t] : !short, !floats
  }
}

// A lane converts the elements of a row one by one to find the index of the maximum. So it need not keep the elements
// that were widened, two at a time, for the exponentials.
// RUN: %mlafix-opt %s --kernel=best --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=BEST
// BEST-LABEL: .entry best_dense(
// BEST-COUNT-32: shl.b32 %{{r[0-9]+}}, %{{r[0-9]+}}, 16;
// BEST: cvt.f32.bf16
mlafix.kernel @best(%y: !icol {mlafix.dims = ["n"], mlafix.access = "write"}, %z: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !longs {mlafix.dims = ["n", "32000"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !icol
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !longs -> !long
    %most = mlafix.reduce max %v : !long
    %mosts = mlafix.splat %most : f32 -> !long
    %below = arith.subf %v, %mosts : !long
    %powers = math.exp %below : !long
    %sum = mlafix.reduce add %powers : !long
    mlafix.store %sum, %z[%t] : f32, !col
    %best = mlafix.arg_reduce max %v : !long
    mlafix.store %best, %y[%t] : i32, !icol
  }
}

// Runs the pass alone: a select with a constant is narrowed, too.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-lower-states{target=sm_90},mlafix-distribute,mlafix-narrow-rows))" | FileCheck %s --check-prefix=ALONE
// ALONE-LABEL: mlafix.kernel @best_dense
// ALONE: arith.maximumf %{{.*}} : vector<8xbf16>
// A pack that a lane does not have is filled with the least number.
// ALONE: %[[LEAST:.*]] = arith.constant dense<0xFF80> : vector<8xbf16>
// ALONE: arith.select %{{.*}}, %{{.*}}, %[[LEAST]] : vector<8xbf16>
// ALONE: arith.maximumf %{{.*}} : vector<2xbf16>
// ALONE: scf.if
// ALONE: arith.extf %{{.*}} : vector<8xbf16> to vector<8xf32>
