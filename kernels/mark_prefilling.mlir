// Marks the requests that are still prefilling: flags[i] = computed[i] < prompt[i] on the first live_rows, false on the rest.
//
//   flags     [n] bool  written
//   computed  [m] I     i32 or i64; tokens computed so far
//   prompt    [m] I     tokens of the prompt
//   live_rows     index, 0 … n
//
// Entries past m count as not live.

!flags = memref<?xi1, strided<[?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>

mlafix.kernel @mark_prefilling(
    %flags: !flags {mlafix.dims = ["n"], mlafix.access = "write"},
    %computed: !ints {mlafix.dims = ["m"], mlafix.dtype = "I", mlafix.access = "read"},
    %prompt: !ints {mlafix.dims = ["m"], mlafix.dtype = "I", mlafix.access = "read"},
    %live_rows: index {mlafix.at_most = "n"}) attributes {defaults = {I = "i32"}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %flags, %c0 : !flags
  %m = memref.dim %computed, %c0 : !ints
  mlafix.forall (%t) in (%n) {
    %is_live = arith.cmpi slt, %t, %live_rows : index
    %known = arith.cmpi slt, %t, %m : index
    %reads = arith.andi %is_live, %known : i1
    %done = mlafix.load %computed[%t] if %reads : !ints -> i64
    %all = mlafix.load %prompt[%t] if %reads : !ints -> i64
    %prefilling = arith.cmpi slt, %done, %all : i64
    mlafix.store %prefilling, %flags[%t] : i1, !flags
  }
}
