// A lane has four packs of a long row if it reduces the row and computes much with each element. It has two packs if
// there is less to compute, or if the row is shorter.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90})" | FileCheck %s
// If a thread needs more registers than residentRegisters, the number of blocks per multiprocessor is chosen for 128
// registers per thread: four blocks of 128 threads.
// RUN: %mlafix-opt %s --kernel=crowded --target=sm_90 --emit=ptx --variant=dense -o - | FileCheck %s --check-prefix=PTX

!rows = memref<?x512xbf16, strided<[?, 1], offset: ?>>
!table = memref<?x64xf32, strided<[?, 1], offset: ?>>
!row = tensor<512xf32, #mlafix.dim<512>>
!short = memref<?x256xbf16, strided<[?, 1], offset: ?>>
!half = tensor<256xf32, #mlafix.dim<256>>

// CHECK-LABEL: mlafix.kernel @busy_dense(
// CHECK-SAME: layout = <lanes = 16, packs = 4, pack = 8
mlafix.kernel @busy(%y: !rows {mlafix.dims = ["n", "d"], mlafix.access = "write"},
                    %x: !rows {mlafix.dims = ["n", "d"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !row
    %1 = math.absf %v : !row
    %2 = arith.mulf %1, %v : !row
    %3 = arith.addf %2, %v : !row
    %4 = arith.mulf %3, %v : !row
    %5 = arith.addf %4, %v : !row
    %6 = arith.mulf %5, %v : !row
    %7 = arith.addf %6, %v : !row
    %8 = arith.mulf %7, %v : !row
    %9 = arith.addf %8, %v : !row
    %10 = arith.mulf %9, %v : !row
    %11 = arith.addf %10, %v : !row
    %most = mlafix.reduce max %11 : !row -> f32
    %all = mlafix.splat %most : f32 -> !row
    %12 = arith.subf %11, %all : !row
    mlafix.store %12, %y[%t] : !row, !rows
  }
}

// CHECK-LABEL: mlafix.kernel @idle_dense(
// CHECK-SAME: layout = <lanes = 32, packs = 2, pack = 8
mlafix.kernel @idle(%y: !rows {mlafix.dims = ["n", "d"], mlafix.access = "write"},
                    %x: !rows {mlafix.dims = ["n", "d"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !row
    %most = mlafix.reduce max %v : !row -> f32
    %all = mlafix.splat %most : f32 -> !row
    %1 = arith.subf %v, %all : !row
    mlafix.store %1, %y[%t] : !row, !rows
  }
}

// CHECK-LABEL: mlafix.kernel @short_dense(
// CHECK-SAME: layout = <lanes = 16, packs = 2, pack = 8
mlafix.kernel @short(%y: !short {mlafix.dims = ["n", "d"], mlafix.access = "write"},
                     %x: !short {mlafix.dims = ["n", "d"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !short
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !short -> !half
    %1 = math.absf %v : !half
    %2 = arith.mulf %1, %v : !half
    %3 = arith.addf %2, %v : !half
    %4 = arith.mulf %3, %v : !half
    %5 = arith.addf %4, %v : !half
    %6 = arith.mulf %5, %v : !half
    %7 = arith.addf %6, %v : !half
    %8 = arith.mulf %7, %v : !half
    %9 = arith.addf %8, %v : !half
    %10 = arith.mulf %9, %v : !half
    %11 = arith.addf %10, %v : !half
    %most = mlafix.reduce max %11 : !half -> f32
    %all = mlafix.splat %most : f32 -> !half
    %12 = arith.subf %11, %all : !half
    mlafix.store %12, %y[%t] : !half, !short
  }
}

// PTX: .entry crowded_dense
// PTX: .minnctapersm 4
mlafix.kernel @crowded(%y: !rows {mlafix.dims = ["n", "d"], mlafix.access = "write"},
                       %a: !rows {mlafix.dims = ["n", "d"], mlafix.access = "read"},
                       %b: !rows {mlafix.dims = ["n", "d"], mlafix.access = "read"},
                       %c: !rows {mlafix.dims = ["n", "d"], mlafix.access = "read"},
                       %d: !rows {mlafix.dims = ["n", "d"], mlafix.access = "read"},
                       %cosines: !table {mlafix.dims = ["n", "z"], mlafix.access = "read"},
                       %sines: !table {mlafix.dims = ["n", "z"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v0 = mlafix.load %a[%t] : !rows -> !row
    %v1 = mlafix.load %b[%t] : !rows -> !row
    %v2 = mlafix.load %c[%t] : !rows -> !row
    %v3 = mlafix.load %d[%t] : !rows -> !row
    %cos = mlafix.load_into %cosines[%t] from 448 each 1 : !table -> !row
    %sin = mlafix.load_into %sines[%t] from 448 each 1 : !table -> !row
    %1 = arith.addf %v0, %v1 : !row
    %2 = arith.addf %v2, %v3 : !row
    %3 = arith.mulf %1, %cos : !row
    %4 = arith.mulf %2, %sin : !row
    %5 = arith.addf %3, %4 : !row
    %most = mlafix.reduce max %5 : !row -> f32
    %all = mlafix.splat %most : f32 -> !row
    %6 = arith.subf %5, %all : !row
    mlafix.store %6, %y[%t] : !row, !rows
  }
}
