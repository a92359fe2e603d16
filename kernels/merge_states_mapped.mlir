// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/merge_mapped.py: edit that.
//
// Merges groups of partial attention states through maps. For each group g with its parts j in [indptr[g], indptr[g + 1]):
//
//   out[t], out_lse[t] = (+) over j of (parts[i], lses[i]),  t = row_map[g] or g,  i = part_map[j] or j
//
//   out      [n, H, D]  O    written in the rows that groups name
//   out_lse  [n, H]     f32  likewise; optional
//   parts    [p, H, D]  T    f32 as a rule
//   lses     [p, H]     f32
//   indptr   [g1]       i32  one entry more than there are groups
//   part_map [k]        i32  the row of each part; optional
//   row_map  [g]        i32  the row of each group, no two alike; optional
//   sinks    [H]        f32  logits without a value, in base e; they count in out but not in out_lse; optional
//   min_parts           i32  groups with fewer parts are skipped. 0: groups without parts are written; 2: groups with a single part
//                            keep the row that the writer of the part has stored
//   empty_lse           f32  stored in out_lse in place of -inf
//
// B is the base of the lses, e by default. ResultBase is the base of out_lse, B by default. A group whose row does not exist is
// skipped, and a part that does not exist is empty. A group that violates 0 <= indptr[g] <= indptr[g + 1] has no parts.

!bf16_3d = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!f32_2d = memref<?x?xf32, strided<[?, ?], offset: ?>>
!f32_3d = memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>
!i32_1d = memref<?xi32, strided<[?], offset: ?>>
!f32_1d = memref<?xf32, strided<[?], offset: ?>>

mlafix.kernel @merge_states_mapped(
    %out: !bf16_3d {mlafix.access = "update", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "O"},
    %out_lse: !f32_2d {mlafix.access = "update", mlafix.dims = ["n", "H"], mlafix.optional},
    %parts: !f32_3d {mlafix.access = "read", mlafix.dims = ["p", "H", "D"], mlafix.dtype = "T"},
    %lses: !f32_2d {mlafix.access = "read", mlafix.dims = ["p", "H"]},
    %indptr: !i32_1d {mlafix.access = "read", mlafix.dims = ["g1"]},
    %part_map: !i32_1d {mlafix.access = "read", mlafix.dims = ["k"], mlafix.optional},
    %row_map: !i32_1d {mlafix.access = "read", mlafix.dims = ["g"], mlafix.optional},
    %sinks: !f32_1d {mlafix.access = "read", mlafix.dims = ["H"], mlafix.optional},
    %min_parts: i32,
    %empty_lse: f32) attributes {defaults = {B = "e", ResultBase = "B", T = "f32"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c-1_i32 = arith.constant -1 : i32
  %c0_i32 = arith.constant 0 : i32
  %minus_inf = arith.constant 0xFF800000 : f32
  %f0 = arith.constant 0.000000e+00 : f32
  %g1 = memref.dim %indptr, %c0 : !i32_1d
  %H = memref.dim %out, %c1 : !bf16_3d
  %g_2 = memref.dim %row_map, %c0 : !i32_1d
  %n = memref.dim %out, %c0 : !bf16_3d
  %k = memref.dim %part_map, %c0 : !i32_1d
  %p = memref.dim %parts, %c0 : !f32_3d
  mlafix.distinct %row_map : !i32_1d
  mlafix.forall (%g, %h) in (%g1, %H) {
    %0 = arith.addi %g, %c1 : index
    %known = arith.cmpi slt, %0, %g1 : index
    %first = mlafix.load %indptr[%g] if %known : !i32_1d -> i32
    %1 = arith.addi %g, %c1 : index
    %last = mlafix.load %indptr[%1] if %known : !i32_1d -> i32
    %2 = mlafix.present %row_map : !i32_1d
    %3 = scf.if %2 -> (index) {
      %4 = arith.cmpi slt, %g, %g_2 : index
      %5 = mlafix.load %row_map[%g] if %4 else %c-1_i32 : !i32_1d -> i32
      %t = arith.index_cast %5 : i32 to index
      scf.yield %t : index
    } else {
      scf.yield %g : index
    }
    %6 = arith.cmpi sle, %c0_i32, %first : i32
    %7 = arith.cmpi sle, %first, %last : i32
    %sound = arith.andi %6, %7 : i1
    %8 = arith.subi %last, %first : i32
    %count = arith.select %sound, %8, %c0_i32 : i32
    %9 = arith.cmpi sle, %c0, %3 : index
    %10 = arith.cmpi slt, %3, %n : index
    %11 = arith.andi %9, %10 : i1
    %12 = arith.andi %known, %11 : i1
    %13 = arith.cmpi sge, %count, %min_parts : i32
    %14 = arith.andi %12, %13 : i1
    scf.if %14 {
      %15 = mlafix.present %part_map : !i32_1d
      %named = arith.select %15, %k, %p : index
      %16 = arith.index_cast %first : i32 to index
      %17 = arith.index_cast %last : i32 to index
      %merged = mlafix.identity : <"D", "B">
      %18 = arith.minsi %17, %named : index
      %19 = arith.select %sound, %18, %16 : index
      %merged_2 = scf.for %j = %16 to %19 step %c1 iter_args(%merged_3 = %merged) -> (!mlafix.state<"D", "B">) {
        %20 = mlafix.present %part_map : !i32_1d
        %21 = scf.if %20 -> (index) {
          %22 = arith.cmpi slt, %j, %k : index
          %23 = mlafix.load %part_map[%j] if %22 else %c-1_i32 : !i32_1d -> i32
          %i = arith.index_cast %23 : i32 to index
          scf.yield %i : index
        } else {
          scf.yield %j : index
        }
        %24 = arith.cmpi sle, %c0, %21 : index
        %25 = arith.cmpi slt, %21, %p : index
        %26 = arith.andi %24, %25 : i1
        %27 = mlafix.load_state %parts[%21, %h] lse %lses[%21, %h] if %26 : !f32_3d, !f32_2d -> <"D", "B">
        %merged_4 = mlafix.merge %merged_3, %27 : <"D", "B">
        scf.yield %merged_4 : !mlafix.state<"D", "B">
      }
      %28 = mlafix.present %sinks : !f32_1d
      %29 = mlafix.load %sinks[%h] if %28 else %minus_inf : !f32_1d -> f32
      %30 = mlafix.splat %f0 : f32 -> tensor<?xf32, #mlafix.dim<"D">>
      %31 = mlafix.make_state %30 lse %29 : tensor<?xf32, #mlafix.dim<"D">> -> <"D", e, sink>
      %32 = mlafix.rebase %31 : <"D", e, sink> -> <"D", "B", sink>
      %whole = mlafix.merge %merged_2, %32 : (!mlafix.state<"D", "B">, !mlafix.state<"D", "B", sink>) -> !mlafix.state<"D", "B", sink>
      mlafix.store_state %whole to %out[%3, %h] : <"D", "B", sink>, !bf16_3d
      %33 = mlafix.rebase %merged_2 : <"D", "B"> -> <"D", "ResultBase">
      %lse = mlafix.lse_of %33 : <"D", "ResultBase">
      %34 = arith.cmpf une, %lse, %minus_inf : f32
      %35 = arith.select %34, %lse, %empty_lse : f32
      mlafix.store %35, %out_lse[%3, %h] : f32, !f32_2d
    }
  }
}
