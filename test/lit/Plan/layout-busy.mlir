// A lane has four packs of a long row if it reduces the row and computes much with each element. It has two packs if
// there is less to compute, or if the row is shorter.
// RUN: %mlafix-opt %s --kernel=busy --specialize=D=512 --target=sm_90 --emit=layout --variant=dense | FileCheck %s --check-prefix=BUSY
// RUN: %mlafix-opt %s --kernel=busy --specialize=D=256 --target=sm_90 --emit=layout --variant=dense | FileCheck %s --check-prefix=SHORT
// RUN: %mlafix-opt %s --kernel=idle --specialize=D=512 --target=sm_90 --emit=layout --variant=dense | FileCheck %s --check-prefix=IDLE
// If a thread needs more registers than residentRegisters, the number of blocks per multiprocessor is chosen for 128
// registers per thread: four blocks of 128 threads.
// RUN: %mlafix-opt %s --kernel=crowded --target=sm_90 --emit=ptx --variant=dense -o - | FileCheck %s --check-prefix=PTX

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!row = tensor<?xf32, #mlafix.dim<"D">>

// BUSY: layout = <lanes = 16, packs = 4, pack = 8
// SHORT: layout = <lanes = 16, packs = 2, pack = 8
mlafix.kernel @busy(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
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

// IDLE: layout = <lanes = 32, packs = 2, pack = 8
mlafix.kernel @idle(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
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

// PTX: .entry crowded_dense
// PTX: .minnctapersm 4
!longs = memref<?x512xbf16, strided<[?, 1], offset: ?>>
!table = memref<?x64xf32, strided<[?, 1], offset: ?>>
!long = tensor<512xf32, #mlafix.dim<512>>
mlafix.kernel @crowded(%y: !longs {mlafix.dims = ["n", "d"], mlafix.access = "write"},
                       %a: !longs {mlafix.dims = ["n", "d"], mlafix.access = "read"},
                       %b: !longs {mlafix.dims = ["n", "d"], mlafix.access = "read"},
                       %c: !longs {mlafix.dims = ["n", "d"], mlafix.access = "read"},
                       %d: !longs {mlafix.dims = ["n", "d"], mlafix.access = "read"},
                       %cosines: !table {mlafix.dims = ["n", "z"], mlafix.access = "read"},
                       %sines: !table {mlafix.dims = ["n", "z"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : !longs
  mlafix.forall (%t) in (%n) {
    %v0 = mlafix.load %a[%t] : !longs -> !long
    %v1 = mlafix.load %b[%t] : !longs -> !long
    %v2 = mlafix.load %c[%t] : !longs -> !long
    %v3 = mlafix.load %d[%t] : !longs -> !long
    %cos = mlafix.load_into %cosines[%t] from 448 each 1 : !table -> !long
    %sin = mlafix.load_into %sines[%t] from 448 each 1 : !table -> !long
    %1 = arith.addf %v0, %v1 : !long
    %2 = arith.addf %v2, %v3 : !long
    %3 = arith.mulf %1, %cos : !long
    %4 = arith.mulf %2, %sin : !long
    %5 = arith.addf %3, %4 : !long
    %most = mlafix.reduce max %5 : !long -> f32
    %all = mlafix.splat %most : f32 -> !long
    %6 = arith.subf %5, %all : !long
    mlafix.store %6, %y[%t] : !long, !longs
  }
}
