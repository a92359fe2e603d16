// Merges groups of partial attention states through maps. For each group g with its parts j in [indptr[g], indptr[g + 1]):
//
//   out[t], out_lse[t] = (+) over j of (parts[i], lses[i]),  t = row_map[g] or g,  i = part_map[j] or j
//
//   out      [n, H, D]  O    written in the rows that groups name
//   out_lse  [n, H]     f32  likewise; optional
//   parts    [p, H, D]  T    f32 as a rule
//   lses     [p, H]     f32
//   indptr   [g1]       i32  one entry more than groups
//   part_map [k]        i32  the row of each part; optional
//   row_map  [g]        i32  the row of each group, no two alike; optional
//   sinks    [H]        f32  a logit without a value, in base e, beside the parts: out has it, out_lse has not; optional
//   min_parts           i32  groups of fewer parts are left out: 0 writes where there are none, 2 leaves what the writer of an only part
//                            has written
//   empty_lse           f32  stored for -inf, which is where nothing was merged
//
// The lses are in base e, or in base 2 where B = 2, and out_lse in base e, or in base 2 where C = 2. A group of a row that is none is
// left out, and a part that is none is empty. A group that is not 0 <= indptr[g] <= indptr[g + 1] has no parts.

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!parts = memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>
!heads = memref<?xf32, strided<[?], offset: ?>>

mlafix.kernel @merge_states_mapped(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "O", mlafix.access = "update"},
    %out_lse: !lses {mlafix.dims = ["n", "H"], mlafix.access = "update", mlafix.optional},
    %parts: !parts {mlafix.dims = ["p", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %lses: !lses {mlafix.dims = ["p", "H"], mlafix.access = "read"},
    %indptr: !ints {mlafix.dims = ["g1"], mlafix.access = "read"},
    %part_map: !ints {mlafix.dims = ["k"], mlafix.access = "read", mlafix.optional},
    %row_map: !ints {mlafix.dims = ["g"], mlafix.access = "read", mlafix.optional},
    %sinks: !heads {mlafix.dims = ["H"], mlafix.access = "read", mlafix.optional},
    %min_parts: i32,
    %empty_lse: f32) attributes {defaults = {B = "e", C = "e", T = "f32"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %no_row = arith.constant -1 : i32
  %nothing = arith.constant 0.0 : f32
  %minus_inf = arith.constant 0xFF800000 : f32
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  %p = memref.dim %parts, %c0 : !parts
  %g1 = memref.dim %indptr, %c0 : !ints
  %k = memref.dim %part_map, %c0 : !ints
  %groups = memref.dim %row_map, %c0 : !ints
  mlafix.distinct %row_map : !ints
  mlafix.forall (%g, %h) in (%g1, %H) {
    %next = arith.addi %g, %c1 : index
    %known = arith.cmpi slt, %next, %g1 : index
    %first = mlafix.load %indptr[%g] if %known : !ints -> i32
    %last = mlafix.load %indptr[%next] if %known : !ints -> i32
    %has_rows = mlafix.present %row_map : !ints
    %t = scf.if %has_rows -> index {
      %is_listed = arith.cmpi slt, %g, %groups : index
      %row = mlafix.load %row_map[%g] if %is_listed else %no_row : !ints -> i32
      %mapped = arith.index_cast %row : i32 to index
      scf.yield %mapped : index
    } else {
      scf.yield %g : index
    }
    %is_positive = arith.cmpi sle, %none, %first : i32
    %is_ordered = arith.cmpi sle, %first, %last : i32
    %sound = arith.andi %is_positive, %is_ordered : i1
    %size = arith.subi %last, %first : i32
    %count = arith.select %sound, %size, %none : i32
    %from_zero = arith.cmpi sle, %c0, %t : index
    %below = arith.cmpi slt, %t, %n : index
    %inside = arith.andi %from_zero, %below : i1
    %exists = arith.andi %known, %inside : i1
    %enough = arith.cmpi sge, %count, %min_parts : i32
    %wanted = arith.andi %exists, %enough : i1
    scf.if %wanted {
      // Parts past the end of the map, or of the parts themselves, are empty: a bound that lies wrong costs no iterations.
      %has_map = mlafix.present %part_map : !ints
      %named = arith.select %has_map, %k, %p : index
      %start = arith.index_cast %first : i32 to index
      %end = arith.index_cast %last : i32 to index
      %last_named = arith.minsi %end, %named : index
      %stop = arith.select %sound, %last_named, %start : index
      %empty = mlafix.identity : !mlafix.state<"D", "B">
      %merged = scf.for %j = %start to %stop step %c1 iter_args(%acc = %empty) -> (!mlafix.state<"D", "B">) {
        %i = scf.if %has_map -> index {
          %is_listed = arith.cmpi slt, %j, %k : index
          %part = mlafix.load %part_map[%j] if %is_listed else %no_row : !ints -> i32
          %mapped = arith.index_cast %part : i32 to index
          scf.yield %mapped : index
        } else {
          scf.yield %j : index
        }
        %not_negative = arith.cmpi sle, %c0, %i : index
        %not_past = arith.cmpi slt, %i, %p : index
        %live = arith.andi %not_negative, %not_past : i1
        %state = mlafix.load_state %parts[%i, %h] lse %lses[%i, %h] if %live : !parts, !lses -> !mlafix.state<"D", "B">
        %sum = mlafix.merge %acc, %state : !mlafix.state<"D", "B">
        scf.yield %sum : !mlafix.state<"D", "B">
      }
      // A state of -inf where there are no sinks: one merge of all that counts.
      %has_sinks = mlafix.present %sinks : !heads
      %logit = mlafix.load %sinks[%h] if %has_sinks else %minus_inf : !heads -> f32
      %zeros = mlafix.splat %nothing : f32 -> tensor<?xf32, #mlafix.dim<"D">>
      %natural = mlafix.make_state %zeros lse %logit : tensor<?xf32, #mlafix.dim<"D">> -> !mlafix.state<"D", e, sink>
      %sink = mlafix.rebase %natural : !mlafix.state<"D", e, sink> -> !mlafix.state<"D", "B", sink>
      %whole = mlafix.merge %merged, %sink : (!mlafix.state<"D", "B">, !mlafix.state<"D", "B", sink>) -> !mlafix.state<"D", "B", sink>
      mlafix.store_state %whole to %out[%t, %h] : !mlafix.state<"D", "B", sink>, !rows
      %stored = mlafix.rebase %merged : !mlafix.state<"D", "B"> -> !mlafix.state<"D", "C">
      %lse = mlafix.lse_of %stored : !mlafix.state<"D", "C">
      %is_any = arith.cmpf une, %lse, %minus_inf : f32
      %lse_or_empty = arith.select %is_any, %lse, %empty_lse : f32
      mlafix.store %lse_or_empty, %out_lse[%t, %h] : f32, !lses
    }
  }
}
