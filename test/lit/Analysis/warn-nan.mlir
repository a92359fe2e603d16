// Warnings about NaN from empty rows, for arithmetic on lses that merges written by hand often contain.
// RUN: %mlafix-opt %s --canonicalize --mlafix-warn-nan --verify-diagnostics -o /dev/null

!vec = memref<?xf32, strided<[?], offset: ?>>
!mat = memref<?x?xf32, strided<[?, 1], offset: ?>>
!mats = memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>
!flags = memref<?xi1, strided<[?], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>
!lses = tensor<?xf32, #mlafix.dim<"k">>

// exp(lse - max(a, b)) is NaN for two empty rows. A row whose lse is +inf is empty, too.
mlafix.kernel @plain_merge(%out_lse: !vec {mlafix.dims = ["n"], mlafix.access = "write"},
    %a_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %b_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out_lse, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %a_lse[%t] : !vec -> f32
    %b = mlafix.load %b_lse[%t] : !vec -> f32
    %m = arith.maximumf %a, %b : f32
    // expected-warning @below {{expected no NaN where no input is NaN, got -inf - -inf for a_lse = -inf, b_lse = -inf (an empty row); merge the states}}
    %x = arith.subf %a, %m : f32
    // expected-warning @below {{got -inf - -inf for a_lse = -inf, b_lse = -inf}}
    %y = arith.subf %b, %m : f32
    %p = math.exp %x : f32
    %q = math.exp %y : f32
    %s = arith.addf %p, %q : f32
    %l = math.log %s : f32
    %r = arith.addf %l, %m : f32
    mlafix.store %r, %out_lse[%t] : f32, !vec
  }
}

// If both rows are empty, 0 replaces the maximum. The weights and their sum are then 0, and the division gives NaN.
mlafix.kernel @finite_maximum(%out: !mat {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !mat {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %a_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %b_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !mat
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %none = arith.constant 0xFF800000 : f32
    %inf = arith.constant 0x7F800000 : f32
    %a0 = mlafix.load %a_lse[%t] : !vec -> f32
    %b0 = mlafix.load %b_lse[%t] : !vec -> f32
    %a_inf = arith.cmpf oeq, %a0, %inf : f32
    %b_inf = arith.cmpf oeq, %b0, %inf : f32
    %a = arith.select %a_inf, %none, %a0 : f32
    %b = arith.select %b_inf, %none, %b0 : f32
    %m = arith.maximumf %a, %b : f32
    %empty = arith.cmpf oeq, %m, %none : f32
    %safe = arith.select %empty, %zero, %m : f32
    %d = arith.subf %a, %safe : f32
    %e = arith.subf %b, %safe : f32
    %p = math.exp %d : f32
    %q = math.exp %e : f32
    %s = arith.addf %p, %q : f32
    // expected-warning @below {{got 0 / 0 for a_lse = -inf, b_lse = -inf}}
    %w = arith.divf %p, %s : f32
    %row = mlafix.load %x[%t] : !mat -> !tile
    %ws = mlafix.splat %w : f32 -> !tile
    // expected-warning @below {{got 0 * a row of x, which may hold anything, for a_lse = -inf}}
    %scaled = arith.mulf %ws, %row : !tile
    mlafix.store %scaled, %out[%t] : !tile, !mat
  }
}

// The sum of no weights is 0. Its reciprocal is inf, and 0 * inf is NaN.
mlafix.kernel @reciprocal(%out_lse: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out_lse, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %one = arith.constant 1.0 : f32
    %a = mlafix.load %lse[%t] : !vec -> f32
    %p = math.exp2 %a : f32
    %r = arith.divf %one, %p : f32
    // expected-warning @below {{got 0 * inf for lse = -inf}}
    %x = arith.mulf %p, %r : f32
    mlafix.store %x, %out_lse[%t] : f32, !vec
  }
}

// An entropy multiplies a weight by its lse: 0 * -inf is NaN for an empty row.
mlafix.kernel @entropy(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %lse[%t] : !vec -> f32
    %p = math.exp %a : f32
    // expected-warning @below {{got 0 * -inf for lse = -inf}}
    %h = arith.mulf %p, %a : f32
    mlafix.store %h, %out[%t] : f32, !vec
  }
}

// The sigmoid of a difference of lses, as in merges of ring attention.
mlafix.kernel @sigmoid(%out: !mat {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !mat {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %y: !mat {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"},
    %block_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !mat
  mlafix.forall (%t) in (%n) {
    %one = arith.constant 1.0 : f32
    %a = mlafix.load %lse[%t] : !vec -> f32
    %b = mlafix.load %block_lse[%t] : !vec -> f32
    // expected-warning @below {{got -inf - -inf for lse = -inf, block_lse = -inf}}
    %d = arith.subf %a, %b : f32
    %e = math.exp %d : f32
    %s = arith.addf %one, %e : f32
    %w = arith.divf %one, %s : f32
    %p = mlafix.load %x[%t] : !mat -> !tile
    %q = mlafix.load %y[%t] : !mat -> !tile
    %ws = mlafix.splat %w : f32 -> !tile
    %diff = arith.subf %p, %q : !tile
    %part = arith.mulf %ws, %diff : !tile
    %r = arith.subf %p, %part : !tile
    mlafix.store %r, %out[%t] : !tile, !mat
  }
}

// A running maximum over parts, where the first part is empty.
mlafix.kernel @online(%out: !mat {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %parts: !mats {mlafix.dims = ["k", "n", "D"], mlafix.access = "read"},
    %part_lses: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["k", "n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !mat
  %k = memref.dim %parts, %c0 : !mats
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %none = arith.constant 0xFF800000 : f32
    %nothing = mlafix.splat %zero : f32 -> !tile
    %m, %s, %acc = scf.for %i = %c0 to %k step %c1 iter_args(%mi = %none, %si = %zero, %ai = %nothing) -> (f32, f32, !tile) {
      %l = mlafix.load %part_lses[%i, %t] : memref<?x?xf32, strided<[?, ?], offset: ?>> -> f32
      %row = mlafix.load %parts[%i, %t] : !mats -> !tile
      %mn = arith.maximumf %mi, %l : f32
      // expected-warning @below {{got -inf - -inf for part_lses = -inf}}
      %d = arith.subf %mi, %mn : f32
      %alpha = math.exp %d : f32
      // expected-warning @below {{got -inf - -inf for part_lses = -inf}}
      %e = arith.subf %l, %mn : f32
      %p = math.exp %e : f32
      %s1 = arith.mulf %si, %alpha : f32
      %sn = arith.addf %s1, %p : f32
      %alphas = mlafix.splat %alpha : f32 -> !tile
      %ps = mlafix.splat %p : f32 -> !tile
      %a1 = arith.mulf %ai, %alphas : !tile
      // expected-warning @below {{got 0 * a row of parts, which may hold anything, for part_lses = -inf}}
      %a2 = arith.mulf %row, %ps : !tile
      %an = arith.addf %a1, %a2 : !tile
      scf.yield %mn, %sn, %an : f32, f32, !tile
    }
    %ss = mlafix.splat %s : f32 -> !tile
    %r = arith.divf %acc, %ss : !tile
    mlafix.store %r, %out[%t] : !tile, !mat
  }
}

// A running sum that leaves out empty parts. The sum is 0 if all parts are empty, and the division by it then gives
// NaN.
mlafix.kernel @sum_of_none(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"},
    %part_lses: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["k", "n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !vec
  %k = memref.dim %part_lses, %c0 : memref<?x?xf32, strided<[?, ?], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %s, %acc = scf.for %i = %c0 to %k step %c1 iter_args(%si = %zero, %ai = %zero) -> (f32, f32) {
      %l = mlafix.load %part_lses[%i, %t] : memref<?x?xf32, strided<[?, ?], offset: ?>> -> f32
      %live = math.isfinite %l : f32
      %r:2 = scf.if %live -> (f32, f32) {
        %p = math.exp %l : f32
        %sn = arith.addf %si, %p : f32
        %term = arith.mulf %p, %l : f32
        %an = arith.addf %ai, %term : f32
        scf.yield %sn, %an : f32, f32
      } else {
        scf.yield %si, %ai : f32, f32
      }
      scf.yield %r#0, %r#1 : f32, f32
    }
    // expected-warning @below {{got 0 / 0 for part_lses = -inf}}
    %r = arith.divf %acc, %s : f32
    mlafix.store %r, %out[%t] : f32, !vec
  }
}

// The kernel only guards against -inf. FlashAttention gives empty rows +inf, which leads to NaN.
mlafix.kernel @half_guarded(%out_lse: !vec {mlafix.dims = ["n"], mlafix.access = "write"},
    %a_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %b_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out_lse, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %none = arith.constant 0xFF800000 : f32
    %a = mlafix.load %a_lse[%t] : !vec -> f32
    %b = mlafix.load %b_lse[%t] : !vec -> f32
    %m = arith.maximumf %a, %b : f32
    %live = arith.cmpf ogt, %a, %none : f32
    // expected-warning @below {{got inf - inf for a_lse = inf}}
    %x = arith.subf %a, %m : f32
    %p = math.exp %x : f32
    %w = arith.select %live, %p, %zero : f32
    mlafix.store %w, %out_lse[%t] : f32, !vec
  }
}

// Weights are not relative to the maximum: exp(+inf) / (exp(+inf) + …) is NaN.
mlafix.kernel @share(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %a_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"},
    %b_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %one = arith.constant 1.0 : f32
    %a = mlafix.load %a_lse[%t] : !vec -> f32
    %b = mlafix.load %b_lse[%t] : !vec -> f32
    %p = math.exp %a : f32
    %q = math.exp %b : f32
    %s0 = arith.addf %p, %q : f32
    %s = arith.addf %s0, %one : f32
    // expected-warning @below {{got inf / inf for a_lse = inf}}
    %w = arith.divf %p, %s : f32
    mlafix.store %w, %out[%t] : f32, !vec
  }
}

// All splits of a row at once: a row of lses, their maximum and their weights.
mlafix.kernel @splits(%out: !mat {mlafix.dims = ["n", "k"], mlafix.access = "write"}, %split_lse: !mat {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !mat
  mlafix.forall (%t) in (%n) {
    %l = mlafix.load %split_lse[%t] : !mat -> !lses
    %m = mlafix.reduce max %l : !lses
    %ms = mlafix.splat %m : f32 -> !lses
    // expected-warning @below {{got -inf - -inf for split_lse = -inf}}
    %d = arith.subf %l, %ms : !lses
    %p = math.exp %d : !lses
    mlafix.store %p, %out[%t] : !lses, !mat
  }
}

// A tensor is an lse because a state op uses it, not because of its name. A state carries NaN into a store.
mlafix.kernel @into_a_state(%out: !mat {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !mat {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %s: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %u: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !mat
  mlafix.forall (%t) in (%n) {
    %state = mlafix.load_state %x[%t] lse %s[%t] : !mat, !vec -> !mlafix.state<"D", e>
    %row = mlafix.load %x[%t] : !mat -> !tile
    %a = mlafix.load %s[%t] : !vec -> f32
    // expected-warning @below {{got -inf - -inf for s = -inf}}
    %d = arith.subf %a, %a : f32
    %again = mlafix.make_state %row lse %d : !tile -> !mlafix.state<"D", e>
    %m = mlafix.merge %state, %again : !mlafix.state<"D", e>
    mlafix.store_state %m to %out[%t] : !mlafix.state<"D", e>, !mat
  }
}

// The weight of an empty row is replaced by 0, but its payload is multiplied: 0 times garbage may be NaN.
mlafix.kernel @dead_payload(%out: !mat {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !mat {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !mat
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %inf = arith.constant 0x7F800000 : f32
    %l = mlafix.load %lse[%t] : !vec -> f32
    %size = math.absf %l : f32
    %empty = arith.cmpf oeq, %size, %inf : f32
    %w = arith.select %empty, %zero, %one : f32
    %row = mlafix.load %x[%t] : !mat -> !tile
    %ws = mlafix.splat %w : f32 -> !tile
    // expected-warning @below {{got 0 * a row of x, which may hold anything, for lse = -inf}}
    %r = arith.mulf %row, %ws : !tile
    mlafix.store %r, %out[%t] : !tile, !mat
  }
}

// The payload of an empty row is multiplied by 0 in a branch for empty rows.
mlafix.kernel @dead_branch(%out: !mat {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !mat {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %flags: !flags {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !mat
  mlafix.forall (%t) in (%n) {
    %none = arith.constant 0xFF800000 : f32
    %l = mlafix.load %lse[%t] : !vec -> f32
    %flag = mlafix.load %flags[%t] : !flags -> i1
    %empty = arith.cmpf oeq, %l, %none : f32
    %both = arith.andi %flag, %empty : i1
    %row = mlafix.load %x[%t] : !mat -> !tile
    scf.if %both {
      %w = math.exp %l : f32
      %ws = mlafix.splat %w : f32 -> !tile
      // expected-warning @below {{got 0 * a row of x, which may hold anything, for lse = -inf}}
      %r = arith.mulf %row, %ws : !tile
      mlafix.store %r, %out[%t] : !tile, !mat
    } else {
      mlafix.store %row, %out[%t] : !tile, !mat
    }
  }
}
