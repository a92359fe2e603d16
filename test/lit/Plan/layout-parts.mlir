// If no operation combines the packs of a row, several blocks process one row, each a part of it, without waiting for
// each other. A row that 1024 lanes hold with two packs each is processed by one block.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90})" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_80})" | FileCheck %s
// The last part may have fewer packs. If a user's plan only gives `lanes`, the number of packs per lane stays the same,
// and the number of parts is computed from both.
// RUN: %mlafix-opt %s --kernel=copied --target=sm_90 --emit=layout --mlafix-plan=dense.lanes=128,fast.parts=10 | FileCheck %s --check-prefix=GIVEN
// RUN: %mlafix-opt %s --kernel=copied --target=sm_90 --emit=layout --mlafix-plan=dense.parts=1,dense.lanes=1024 | FileCheck %s --check-prefix=ONE
// RUN: not %mlafix-opt %s --kernel=waits --target=sm_90 --emit=layout --mlafix-plan=dense.parts=2 2>&1 | FileCheck %s --check-prefix=JOINED

!rows = memref<?x128256xbf16, strided<[?, 1], offset: ?>>
!wide = memref<?x128256xf32, strided<[?, 1], offset: ?>>
!sums = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<128256xf32, #mlafix.dim<128256>>

// CHECK-LABEL: mlafix.kernel @copied_dense(
// CHECK-SAME: #mlafix.guard<max_rows, value = 67108863>
// CHECK-SAME: layout = <lanes = 256, packs = 2, pack = 8, rows = 1, parts = 32>
// CHECK-LABEL: mlafix.kernel @copied_fast(
// CHECK-SAME: layout = <lanes = 256, packs = 2, pack = 8, rows = 1, parts = 32>
// CHECK-LABEL: mlafix.kernel @copied_any(
// CHECK-SAME: layout = <lanes = 1024, packs = 126, pack = 1, rows = 1>
// GIVEN-LABEL: mlafix.kernel @copied_dense(
// GIVEN-SAME: layout = <lanes = 128, packs = 2, pack = 8, rows = 1, parts = 63>
// GIVEN-LABEL: mlafix.kernel @copied_fast(
// GIVEN-SAME: layout = <lanes = 256, packs = 7, pack = 8, rows = 1, parts = 9>
// ONE-LABEL: mlafix.kernel @copied_dense(
// ONE-SAME: #mlafix.guard<max_rows, value = 2097151>
// ONE-SAME: layout = <lanes = 1024, packs = 16, pack = 8, rows = 1>
mlafix.kernel @copied(%y: !rows {mlafix.dims = ["n", "V"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "V"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    mlafix.store %v, %y[%t] : !tile, !rows
  }
}

// A lane stores a scalar that all lanes read before, so the lanes of a row must wait for each other.
// CHECK-LABEL: mlafix.kernel @waits_dense(
// CHECK-NOT: parts
// CHECK-LABEL: mlafix.kernel @waits_any(
// JOINED: expected 'parts' to be 1 unless the packs of a row are independent (no reduction, scan, swap or wait), got 2
mlafix.kernel @waits(%y: !wide {mlafix.dims = ["n", "V"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "V"], mlafix.access = "read"},
                     %s: !sums {mlafix.dims = ["n"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %n = memref.dim %y, %c0 : !wide
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %k = mlafix.load %s[%t] : !sums -> f32
    %all = mlafix.splat %k : f32 -> !tile
    %r = arith.addf %v, %all : !tile
    mlafix.store %r, %y[%t] : !tile, !wide
    %more = arith.addf %k, %one : f32
    mlafix.store %more, %s[%t] : f32, !sums
  }
}

// 1024 lanes with two packs each cover the row, so one block processes it.
// CHECK-LABEL: mlafix.kernel @short_dense(
// CHECK-SAME: layout = <lanes = 1024, packs = 2, pack = 8, rows = 1>
!short = memref<?x16384xbf16, strided<[?, 1], offset: ?>>
mlafix.kernel @short(%y: !short {mlafix.dims = ["n", "V"], mlafix.access = "write"}, %x: !short {mlafix.dims = ["n", "V"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !short
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !short -> tensor<16384xf32, #mlafix.dim<16384>>
    mlafix.store %v, %y[%t] : tensor<16384xf32, #mlafix.dim<16384>>, !short
  }
}

// At the launch, the size of a row decides how many parts the row has. If the row may end at any element
// (@bounded_fast), a lane has several packs of one element.
// CHECK-LABEL: mlafix.kernel @bounded_most4096_whole_dense(
// CHECK-SAME: layout = <lanes = 256, packs = 2, pack = 8, rows = 1>
// CHECK-LABEL: mlafix.kernel @bounded_whole_dense(
// CHECK-SAME: layout = <lanes = 256, packs = 2, pack = 8, rows = 1, parts = 38>
// CHECK-LABEL: mlafix.kernel @bounded_fast(
// CHECK-SAME: layout = <lanes = 256, packs = 5, pack = 1, rows = 1, parts = 119>
!open = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!ends = tensor<151936xf32, #mlafix.dim<"v" most 151936>>
mlafix.kernel @bounded(%y: !open {mlafix.dims = ["n", "v"], mlafix.access = "write"}, %x: !open {mlafix.dims = ["n", "v"], mlafix.access = "read"}) attributes {most = {v = 151936 : i64}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !open
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !open -> !ends
    mlafix.store %v, %y[%t] : !ends, !open
  }
}
