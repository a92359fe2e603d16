// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/metadata.py: edit that.
//
// Marks the requests that are still prefilling: flags[i] = computed[i] < prompt[i] on the first live_rows, false on the rest.
//
//   flags        [n] bool  written
//   computed     [m] I     i32 or i64; tokens computed so far
//   prompt       [m] I     tokens of the prompt
//   live_rows        index, 0 … n
//   live_rows_at [1] i32   the same count on the device, for captured graphs; a negative one counts as 0; optional
//
// Entries past m count as not live.

!i1_1d = memref<?xi1, strided<[?], offset: ?>>
!i32_1d = memref<?xi32, strided<[?], offset: ?>>
!i32_1d_2 = memref<1xi32, strided<[1], offset: ?>>

mlafix.kernel @mark_prefilling(
    %flags: !i1_1d {mlafix.access = "write", mlafix.dims = ["n"]},
    %computed: !i32_1d {mlafix.access = "read", mlafix.dims = ["m"], mlafix.dtype = "I"},
    %prompt: !i32_1d {mlafix.access = "read", mlafix.dims = ["m"], mlafix.dtype = "I"},
    %live_rows: index {mlafix.at_most = "n"},
    %live_rows_at: !i32_1d_2 {mlafix.access = "read", mlafix.dims = [""], mlafix.optional}) attributes {defaults = {I = "i32"}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %flags, %c0 : !i1_1d
  %m = memref.dim %computed, %c0 : !i32_1d
  mlafix.forall (%t) in (%n) {
    %0 = mlafix.present %live_rows_at : !i32_1d_2
    %1 = mlafix.load %live_rows_at[%c0] : !i32_1d_2 -> i32
    %2 = arith.index_cast %1 : i32 to index
    %3 = arith.select %0, %2, %live_rows : index
    %4 = arith.cmpi slt, %t, %3 : index
    %5 = arith.cmpi slt, %t, %m : index
    %reads = arith.andi %4, %5 : i1
    %6 = mlafix.load %computed[%t] if %reads : !i32_1d -> i64
    %7 = mlafix.load %prompt[%t] if %reads : !i32_1d -> i64
    %8 = arith.cmpi slt, %6, %7 : i64
    mlafix.store %8, %flags[%t] : i1, !i1_1d
  }
}
