// Marks the requests that are still prefilling: flags[i] = computed[i] < prompt[i] on the first live_rows, false on the rest.
//
//   flags     [n] bool  written
//   computed  [m] I     i32 or i64; tokens computed so far
//   prompt    [m] I     tokens of the prompt
//   live_rows [1] i32   on the device, so that a captured graph follows it; a negative count is none
//
// Entries past m count as not live.

!flags = memref<?xi1, strided<[?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>
!count = memref<1xi32, strided<[1], offset: ?>>

mlafix.kernel @mark_prefilling_device(
    %flags: !flags {mlafix.dims = ["n"], mlafix.access = "write"},
    %computed: !ints {mlafix.dims = ["m"], mlafix.dtype = "I", mlafix.access = "read"},
    %prompt: !ints {mlafix.dims = ["m"], mlafix.dtype = "I", mlafix.access = "read"},
    %live_rows: !count {mlafix.dims = ["one"], mlafix.access = "read"}) attributes {defaults = {I = "i32"}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %flags, %c0 : !flags
  %m = memref.dim %computed, %c0 : !ints
  mlafix.forall (%t) in (%n) {
    %count = mlafix.load %live_rows[%c0] : !count -> i32
    %live = arith.index_cast %count : i32 to index
    %is_live = arith.cmpi slt, %t, %live : index
    %known = arith.cmpi slt, %t, %m : index
    %reads = arith.andi %is_live, %known : i1
    %done = mlafix.load %computed[%t] if %reads : !ints -> i64
    %all = mlafix.load %prompt[%t] if %reads : !ints -> i64
    %prefilling = arith.cmpi slt, %done, %all : i64
    mlafix.store %prefilling, %flags[%t] : i1, !flags
  }
}
