// Marks the requests that are still prefilling: flags[i] = computed[i] < prompt[i] on the first live_rows, false on the rest.
//
//   flags        [n] bool  written
//   computed     [m] I     i32 or i64; tokens computed so far
//   prompt       [m] I     tokens of the prompt
//   live_rows        index, 0 … n
//   live_rows_at [1] i32   holds it on the device, so that a captured graph follows it; a negative count is none; optional
//
// Entries past m count as not live.

!flags = memref<?xi1, strided<[?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>
!count = memref<1xi32, strided<[1], offset: ?>>

mlafix.kernel @mark_prefilling(
    %flags: !flags {mlafix.dims = ["n"], mlafix.access = "write"},
    %computed: !ints {mlafix.dims = ["m"], mlafix.dtype = "I", mlafix.access = "read"},
    %prompt: !ints {mlafix.dims = ["m"], mlafix.dtype = "I", mlafix.access = "read"},
    %live_rows: index {mlafix.at_most = "n"},
    %live_rows_at: !count {mlafix.dims = [""], mlafix.access = "read", mlafix.optional}) attributes {defaults = {I = "i32"}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %flags, %c0 : !flags
  %m = memref.dim %computed, %c0 : !ints
  mlafix.forall (%t) in (%n) {
    %is_there = mlafix.present %live_rows_at : !count
    %count = mlafix.load %live_rows_at[%c0] : !count -> i32
    %held = arith.index_cast %count : i32 to index
    %live = arith.select %is_there, %held, %live_rows : index
    %is_live = arith.cmpi slt, %t, %live : index
    %known = arith.cmpi slt, %t, %m : index
    %reads = arith.andi %is_live, %known : i1
    %done = mlafix.load %computed[%t] if %reads : !ints -> i64
    %all = mlafix.load %prompt[%t] if %reads : !ints -> i64
    %prefilling = arith.cmpi slt, %done, %all : i64
    mlafix.store %prefilling, %flags[%t] : i1, !flags
  }
}
