// --mlafix-remarks says why the compiler did not apply an optimisation. remarks.mlir tests the remarks about applied
// ones.
// RUN: %mlafix-opt %s --kernel=widens --target=sm_90 --emit=layout --mlafix-remarks -o %t 2>&1 | FileCheck %s --check-prefix=DTYPE
// RUN: %mlafix-opt %s --kernel=five --target=sm_90 --emit=mlir --mlafix-remarks -o %t 2>&1 | FileCheck %s --check-prefix=PREFETCH
// RUN: %mlafix-opt %s --kernel=blanks --target=sm_90 --emit=mlir --mlafix-remarks -o %t 2>&1 | FileCheck %s --check-prefix=WAIT
// RUN: %mlafix-opt %s --kernel=positive --target=x86-64-v3 --emit=mlir --mlafix-remarks -o %t 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: %mlafix-opt %s --kernel=long --target=sm_100 --emit=mlir --mlafix-remarks -o %t 2>&1 | FileCheck %s --check-prefix=LONG
// RUN: %mlafix-opt %s --kernel=flagged --target=sm_90 --emit=mlir --mlafix-remarks -o %t 2>&1 | FileCheck %s --check-prefix=FLAGGED
// RUN: %mlafix-opt %s --kernel=few --target=sm_90 --emit=mlir --mlafix-remarks -o %t 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: %mlafix-opt %s --kernel=stores --target=sm_90 --emit=mlir --mlafix-remarks -o %t 2>&1 | FileCheck %s --check-prefix=STORES
// RUN: %mlafix-opt %s --mlir-disable-threading --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_90 machine=unrollFactor=900,unrollWhole=0}))" --remarks-filter-missed=mlafix-.* --remark-format=emitRemark -o %t 2>&1 | FileCheck %s --check-prefix=UNROLL

!half = memref<?x128xbf16, strided<[?, 1], offset: ?>>
!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
!many = memref<?x?x1024xf32, strided<[?, ?, 1], offset: ?>>
!wide = memref<?x1024xf32, strided<[?, 1], offset: ?>>
!four = memref<?x4x128xf32, strided<[?, ?, 1], offset: ?>>
!col = memref<?xf32, strided<[1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, 1], offset: ?>>
!row = tensor<128xf32, #mlafix.dim<128>>
!state = !mlafix.state<1024, e>

// DTYPE: widens_dense on sm_90: rows of x are moved 8 bytes at a time, where the target has accesses of 16 bytes: a pack has 4 elements in all rows, since most bytes are of elements of 4 bytes [missed: narrow-access, {{[0-9]+}} bytes a row]
mlafix.kernel @widens(%y: !rows {mlafix.dims = ["n", ""], mlafix.access = "write"}, %x: !half {mlafix.dims = ["n", ""], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !half
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !half -> !row
    mlafix.store %v, %y[%t] : !row, !rows
  }
}

// PREFETCH: five_dense on sm_90: rows that have predicates are not prefetched while the preceding grid ends: each of {{[5-9]}} conditions would be a branch, and 4 are the limit [missed: prefetch]
// PREFETCH: five_dense on sm_90: while the preceding grid ends, the first block prefetches 1 of the values that all blocks load [passed: prefetch]
mlafix.kernel @five(
    %y: !rows {mlafix.dims = ["n", ""], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", ""], mlafix.access = "read"},
    %scale: !col {mlafix.dims = ["one"], mlafix.access = "read"}, %a: index, %b: index, %c: index, %d: index, %e: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %s = mlafix.load %scale[%c0] : !col -> f32
    %pa = arith.cmpi ult, %t, %a : index
    %pb = arith.cmpi ult, %t, %b : index
    %pc = arith.cmpi ult, %t, %c : index
    %pd = arith.cmpi ult, %t, %d : index
    %pe = arith.cmpi ult, %t, %e : index
    %va = mlafix.load %x[%a] if %pa : !rows -> !row
    %vb = mlafix.load %x[%b] if %pb : !rows -> !row
    %vc = mlafix.load %x[%c] if %pc : !rows -> !row
    %vd = mlafix.load %x[%d] if %pd : !rows -> !row
    %ve = mlafix.load %x[%e] if %pe : !rows -> !row
    %ab = arith.addf %va, %vb : !row
    %cd = arith.addf %vc, %vd : !row
    %abcd = arith.addf %ab, %cd : !row
    %all = arith.addf %abcd, %ve : !row
    %factor = mlafix.splat %s : f32 -> !row
    %v = arith.mulf %all, %factor : !row
    mlafix.store %v, %y[%t] : !row, !rows
  }
}

// WAIT: blanks_dense on sm_90: the wait for the preceding grid comes first: no address of a load can be computed before it [missed: schedule-grid-wait]
mlafix.kernel @blanks(%y: !rows {mlafix.dims = ["n", ""], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  %zero = arith.constant 0.0 : f32
  mlafix.forall (%t) in (%n) {
    %v = mlafix.splat %zero : f32 -> !row
    mlafix.store %v, %y[%t] : !row, !rows
  }
}

// ROWS: positive_streamed on x86-64-v3: rows of x are not prefetched: the kernel does one row after the other, not batches [missed: prefetch-rows]
// ROWS: positive_streamed on x86-64-v3: rows of z are not prefetched: the condition of their reads depends on other reads [missed: prefetch-rows]
mlafix.kernel @positive(
    %y: !rows {mlafix.dims = ["n", ""], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", ""], mlafix.access = "read"},
    %z: !rows {mlafix.dims = ["n", ""], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  %zero = arith.constant 0.0 : f32
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !row
    %sum = mlafix.reduce add %v : !row
    %isPositive = arith.cmpf ogt, %sum, %zero : f32
    %w = mlafix.load %z[%t] if %isPositive : !rows -> !row
    %both = arith.addf %v, %w : !row
    mlafix.store %both, %y[%t] : !row, !rows
  }
}

// LONG: long_dense on sm_100: a chunk is loaded after the one before it is merged: it would take too many registers of a lane [missed: load-chunks-ahead]
mlafix.kernel @long(
    %out: !wide {mlafix.dims = ["n", ""], mlafix.access = "write"}, %v: !many {mlafix.dims = ["n", "k", ""], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !wide
  %count = memref.dim %v, %c1 : !many
  mlafix.forall (%t) in (%n) {
    %none = mlafix.identity : !state
    %all = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %none) -> (!state) {
      %p = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !many, !lses -> !state
      %m = mlafix.merge %acc, %p : !state
      scf.yield %m : !state
    }
    mlafix.store_state %all to %out[%t] : !state, !wide
  }
}

// FLAGGED: flagged_dense on sm_90: a chunk is loaded after the one before it is merged: the condition of a state's load depends on another load [missed: load-chunks-ahead]
mlafix.kernel @flagged(
    %out: !wide {mlafix.dims = ["n", ""], mlafix.access = "write"}, %v: !many {mlafix.dims = ["n", "k", ""], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"},
    %flags: memref<?x?xi32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %no = arith.constant 0 : i32
  %n = memref.dim %out, %c0 : !wide
  %count = memref.dim %v, %c1 : !many
  mlafix.forall (%t) in (%n) {
    %none = mlafix.identity : !state
    %all = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %none) -> (!state) {
      %flag = mlafix.load %flags[%t, %k] : memref<?x?xi32, strided<[?, 1], offset: ?>> -> i32
      %is = arith.cmpi ne, %flag, %no : i32
      %p = mlafix.load_state %v[%t, %k] lse %s[%t, %k] if %is : !many, !lses -> !state
      %m = mlafix.merge %acc, %p : !state
      scf.yield %m : !state
    }
    mlafix.store_state %all to %out[%t] : !state, !wide
  }
}

// FEW: few on sm_90: a running merge of 4 states is left to be unrolled: their rows have 2048 bytes in all [analysis: chunk-merges]
// FEW: few on sm_90: a loop that reads rows is unrolled whole, so that the rows of 4 iterations are loaded at once [passed: unroll-loops]
// UNROLL: remark: [Missed] unroll-loops | Category:mlafix-unroll-loops | Function=few | Remark="a loop that reads rows is not unrolled: 900 times its body would be {{[0-9]+}} operations, and 1024 are the limit"
mlafix.kernel @few(
    %out: !rows {mlafix.dims = ["n", ""], mlafix.access = "write"}, %v: !four {mlafix.dims = ["n", "", ""], mlafix.access = "read"},
    %s: memref<?x4xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", ""], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %none = mlafix.identity : !mlafix.state<128, e>
    %all = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %none) -> (!mlafix.state<128, e>) {
      %p = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !four, memref<?x4xf32, strided<[?, 1], offset: ?>> -> !mlafix.state<128, e>
      %m = mlafix.merge %acc, %p : !mlafix.state<128, e>
      scf.yield %m : !mlafix.state<128, e>
    }
    mlafix.store_state %all to %out[%t] : !mlafix.state<128, e>, !rows
  }
}

// STORES: stores on sm_90: a loop that reads rows is not unrolled: it stores what it computes of them, and no load passes a store [missed: unroll-loops]
mlafix.kernel @stores(
    %y: !many {mlafix.dims = ["n", "k", ""], mlafix.access = "write"}, %x: !many {mlafix.dims = ["n", "k", ""], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !many
  %k = memref.dim %x, %c1 : !many
  mlafix.forall (%t) in (%n) {
    scf.for %i = %c0 to %k step %c1 {
      %v = mlafix.load %x[%t, %i] : !many -> tensor<1024xf32, #mlafix.dim<1024>>
      mlafix.store %v, %y[%t, %i] : tensor<1024xf32, #mlafix.dim<1024>>, !many
    }
  }
}
