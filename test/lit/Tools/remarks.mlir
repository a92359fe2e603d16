// --mlafix-remarks prints the compiler's decisions about a kernel and their reasons, at the kernel's lines.
// RUN: %mlafix-opt %s --kernel=in_place --target=sm_90 --emit=mlir --mlafix-remarks --specialize=D=128 -o %t 2>&1 | FileCheck %s --check-prefix=GPU --implicit-check-not=missed
// Remarks do not change the code.
// RUN: %mlafix-opt %s --kernel=in_place --target=sm_90 --emit=mlir --specialize=D=128 -o %t.without 2>&1 | count 0
// RUN: diff %t %t.without
// RUN: %mlafix-opt %s --kernel=in_place --target=x86-64-v3 --emit=mlir --mlafix-remarks --specialize=D=128 -o %t 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: %mlafix-opt %s --kernel=in_place --target=sm_100 --emit=layout --mlafix-remarks --specialize=D=36 -o %t 2>&1 | FileCheck %s --check-prefix=NARROW
// RUN: %mlafix-opt %s --kernel=in_place --target=sm_100 --emit=layout --mlafix-remarks --specialize=D=128 -o %t 2>&1 | FileCheck %s --check-prefix=FAST
// RUN: %mlafix-opt %s --kernel=in_place --target=x86-64-v3 --emit=layout --mlafix-remarks --specialize=D=36 -o %t 2>&1 | FileCheck %s --check-prefix=REGISTERS
// With several specialisations, remarks name the bindings.
// RUN: %mlafix-opt %s --kernel=copy --target=x86-64-v3 --emit=unit --mlafix-remarks --specialize=D=32 --specialize=D=64 -o %t 2>&1 | FileCheck %s --check-prefix=UNIT
// RUN: %mlafix-opt %s --kernel=all --target=sm_90 --emit=mlir --mlafix-remarks --specialize=D=128 -o %t 2>&1 | FileCheck %s --check-prefix=LOOP
// RUN: %mlafix-opt %s --kernel=branches --target=sm_90 --emit=mlir --mlafix-remarks --specialize=D=128 -o %t 2>&1 | FileCheck %s --check-prefix=MISSED
// If passes are run by hand, remarks have MLIR's own form, which other tools read.
// RUN: %mlafix-opt %s --mlir-disable-threading --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=128},mlafix.kernel(mlafix-skip-copies))" --remarks-filter-passed=mlafix-.* --remark-format=emitRemark -o %t 2>&1 | FileCheck %s --check-prefix=UPSTREAM

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!wide = memref<?x?xf32, strided<[?, 1], offset: ?>>
!many = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!col = memref<?xf32, strided<[1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, 1], offset: ?>>
!state = !mlafix.state<"D", e>

// GPU: remarks.mlir:[[#STORE:]]:5: remark: in_place on sm_90: if a call is in place, rows on which the predicates leave only the state of b are neither read nor written [passed: skip-copies]
// GPU: remarks.mlir:[[#STORE]]:5: remark: in_place on sm_90: if a call is in place and a tensor has more than 16777216 bytes, a row of b is read after its lse, and not at all if its state is empty [passed: delay-reads]
// GPU: remarks.mlir:[[#KERNEL:]]:1: remark: in_place_dense on sm_90: a code version for calls with rows of out, a, b at multiples of 16 bytes; {{.*}}different addresses for out, a{{.*}} [analysis: code-version]
// GPU: remarks.mlir:[[#KERNEL]]:1: remark: in_place_dense on sm_90: a row of 128 elements is 16 packs of 8 elements; 16 lanes hold up to 1 pack each: a lane holds one pack, and none is idle [analysis: layout]
// GPU: in_place_dense on sm_90: a block of 256 threads has 16 rows: so that it moves about 12288 bytes at once, with 128 to 256 threads [analysis: block]
// GPU: in_place_place on sm_90: a row of 128 elements is 16 packs of 8 elements; 8 lanes hold up to 2 packs each: a row stays within one warp [analysis: layout]
// GPU: in_place_place on sm_90: a block of 128 threads has 16 rows: in place, lanes hold 2 packs and blocks are small, so that fewer threads wait for an lse [analysis: block]
// GPU: in_place_any on sm_90: a code version for all calls [analysis: code-version]
// GPU: in_place_any on sm_90: rows of out, a, b are moved 2 bytes at a time, where the target has accesses of 16 bytes: this code version is for rows at any address [missed: narrow-access, {{[0-9]+}} bytes a row]
// GPU: remarks.mlir:[[#KERNEL + 6]]:3: remark: in_place_dense on sm_90: while the preceding grid ends, the first 90112 threads prefetch 32 bytes of rows each [passed: prefetch]
// GPU: remarks.mlir:[[#KERNEL + 6]]:3: remark: in_place_dense on sm_90: the wait for the preceding grid comes after the addresses of {{[0-9]+}} loads [passed: schedule-grid-wait]

// CPU: in_place on x86-64-v3: if a call is in place, {{.*}} [passed: skip-copies]
// CPU: in_place_streamed on x86-64-v3: a code version for calls with rows of out at multiples of 16 bytes; more bytes in out, a, b than half of the last cache holds
// CPU: in_place_apart on x86-64-v3: a code version for calls with different addresses
// CPU: in_place_any on x86-64-v3: a code version for all calls
// CPU: in_place_streamed on x86-64-v3: the scalars of 16 rows along the outermost extent are computed at once, as vectors, for up to 1 rows along the inner ones, before these rows are moved [passed: batch-rows]
// CPU: remarks.mlir:{{[0-9]+}}:10: remark: in_place_streamed on x86-64-v3: rows of a are prefetched 8 ahead, 256 bytes of each: the CPU's own prefetches end with a page [passed: prefetch-rows]

// NARROW: in_place_dense on sm_100: rows of out, a, b are moved 8 bytes at a time, where the target has accesses of 32 bytes: 36 elements are not a multiple of 16 [missed: narrow-access, {{[0-9]+}} bytes a row]
// FAST: in_place_fast on sm_100: rows of out, a, b are moved 16 bytes at a time, where the target has accesses of 32 bytes: rows of any stride are taken to be aligned to 16 bytes only [missed: narrow-access, {{[0-9]+}} bytes a row]
// REGISTERS: in_place_any on x86-64-v3: rows of 36 elements are computed 4 elements at a time, where a register holds 8 floats: 36 elements are not a multiple of 8 [missed: narrow-access]
// UPSTREAM: remark: [Passed] skip-copies | Category:mlafix-skip-copies | Function=in_place | Remark="if a call is in place
mlafix.kernel @in_place(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %out_lse: !col {mlafix.dims = ["n"], mlafix.access = "write"},
    %a: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %a_lse: !col {mlafix.dims = ["n"], mlafix.access = "read"},
    %b: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %b_lse: !col {mlafix.dims = ["n"], mlafix.access = "read"}, %limit: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %before = arith.cmpi ult, %t, %limit : index
    %x = mlafix.load_state %a[%t] lse %a_lse[%t] if %before : !rows, !col -> !state
    %y = mlafix.load_state %b[%t] lse %b_lse[%t] : !rows, !col -> !state
    %m = mlafix.merge %x, %y : !state
    mlafix.store_state %m to %out[%t] lse %out_lse[%t] : !state, !rows, !col
  }
}

// The kernel computes no costly scalars, so a batch of rows is not worthwhile.
// UNIT: copy on x86-64-v3 with D=32: the scalars of each row are computed for itself: no scalar takes a division, a root, a logarithm or an exponential [missed: batch-rows]
// UNIT: copy_any on x86-64-v3 with D=32: a code version for
// UNIT: copy on x86-64-v3 with D=64: the scalars of each row
mlafix.kernel @copy(%y: !wide {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> tensor<?xf32, #mlafix.dim<"D">>
    mlafix.store %v, %y[%t] : tensor<?xf32, #mlafix.dim<"D">>, !wide
  }
}

// LOOP: remarks.mlir:[[#LINE:]]:12: remark: all on sm_90: a running merge goes by chunks of 4 states, which groups of lanes may share [passed: chunk-merges]
// LOOP: all_dense on sm_90: a row of 128 elements is 16 packs of 8 elements; 16 lanes hold up to 1 pack each: the launch chooses how many groups of lanes share the merge loops [analysis: layout]
// LOOP: all_dense on sm_90: a block has up to 512 threads, 8 of each of 32 groups at least [analysis: block]
// LOOP: remarks.mlir:[[#LINE]]:12: remark: all_dense on sm_90: the next chunk, 80 bytes a lane, is loaded before the current one is merged [passed: load-chunks-ahead]
mlafix.kernel @all(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !many {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %count = memref.dim %v, %c1 : !many
  mlafix.forall (%t) in (%n) {
    %none = mlafix.identity : !state
    %all = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %none) -> (!state) {
      %p = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !many, !lses -> !state
      %m = mlafix.merge %acc, %p : !state
      scf.yield %m : !state
    }
    mlafix.store_state %all to %out[%t] : !state, !rows
  }
}

// MISSED: remarks.mlir:[[#AT:]]:12: remark: branches on sm_90: a running merge takes one state after the other: a launch does not know how often it runs [missed: chunk-merges]
// MISSED: remarks.mlir:[[#AT]]:12: remark: branches on sm_90: a loop that reads rows is unrolled in part, so that the rows of 4 iterations are loaded at once [passed: unroll-loops]
// MISSED: remarks.mlir:[[#AT + 6]]:5: remark: branches on sm_90: every row is read and written: the state without a predicate is not loaded for the merge alone [missed: skip-copies]
// MISSED: remarks.mlir:[[#AT + 6]]:5: remark: branches on sm_90: no row is read later than the others: the merge is not of two different loaded states [missed: delay-reads]
mlafix.kernel @branches(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !many {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}, %lens: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %none = mlafix.identity : !state
    %len = mlafix.load %lens[%t] : memref<?xi32, strided<[1], offset: ?>> -> i32
    %count = arith.index_cast %len : i32 to index
    %all = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %none) -> (!state) {
      %p = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !many, !lses -> !state
      %m = mlafix.merge %acc, %p : !state
      scf.yield %m : !state
    }
    %twice = mlafix.merge %all, %all : !state
    mlafix.store_state %twice to %out[%t] : !state, !rows
  }
}
