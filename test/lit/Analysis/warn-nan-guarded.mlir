// No warning is given for arithmetic on an lse if a guard of one of the usual forms makes the arithmetic right for
// empty rows.
// RUN: %mlafix-opt %s --canonicalize --mlafix-warn-nan --verify-diagnostics -o /dev/null

!vec = memref<?xf32, strided<[?], offset: ?>>
!mat = memref<?x?xf32, strided<[?, 1], offset: ?>>
!mats = memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>
!partials = memref<?x?xf32, strided<[?, ?], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>
!lses = tensor<?xf32, #mlafix.dim<"k">>

// The form of vLLM: an lse of +inf is replaced by -inf. A branch handles the case that both rows are empty. If one row
// is empty, a select replaces its weighted payload by zeros.
mlafix.kernel @both_empty(%out: !mat {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %out_lse: !vec {mlafix.dims = ["n"], mlafix.access = "write"},
    %x: !mat {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %y: !mat {mlafix.dims = ["n", "D"], mlafix.access = "read"},
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
    %nothing = mlafix.splat %zero : f32 -> !tile
    %live = arith.cmpf ogt, %m, %none : f32
    scf.if %live {
      %d = arith.subf %a, %m : f32
      %e = arith.subf %b, %m : f32
      %p = math.exp %d : f32
      %q = math.exp %e : f32
      %s = arith.addf %p, %q : f32
      %l = math.log %s : f32
      %r = arith.addf %l, %m : f32
      %pw = arith.divf %p, %s : f32
      %qw = arith.divf %q, %s : f32
      %xr = mlafix.load %x[%t] : !mat -> !tile
      %yr = mlafix.load %y[%t] : !mat -> !tile
      %pws = mlafix.splat %pw : f32 -> !tile
      %qws = mlafix.splat %qw : f32 -> !tile
      %xp = arith.mulf %xr, %pws : !tile
      %yp = arith.mulf %yr, %qws : !tile
      %a_live = arith.cmpf ogt, %a, %none : f32
      %b_live = arith.cmpf ogt, %b, %none : f32
      %xt = arith.select %a_live, %xp, %nothing : !tile
      %yt = arith.select %b_live, %yp, %nothing : !tile
      %sum = arith.addf %xt, %yt : !tile
      mlafix.store %sum, %out[%t] : !tile, !mat
      mlafix.store %r, %out_lse[%t] : f32, !vec
    } else {
      mlafix.store %nothing, %out[%t] : !tile, !mat
      mlafix.store %none, %out_lse[%t] : f32, !vec
    }
  }
}

// A NaN is computed for an empty row, but a select then replaces it, so no NaN is stored. Only live rows are loaded.
mlafix.kernel @chosen_after(%out: !mat {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !mat {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %a_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %b_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !mat
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %none = arith.constant 0xFF800000 : f32
    %inf = arith.constant 0x7F800000 : f32
    %a = mlafix.load %a_lse[%t] : !vec -> f32
    %b = mlafix.load %b_lse[%t] : !vec -> f32
    %a_abs = math.absf %a : f32
    %b_abs = math.absf %b : f32
    %a_empty = arith.cmpf oeq, %a_abs, %inf : f32
    %b_empty = arith.cmpf oeq, %b_abs, %inf : f32
    %a_live = arith.select %a_empty, %none, %a : f32
    %b_live = arith.select %b_empty, %none, %b : f32
    %m = arith.maximumf %a_live, %b_live : f32
    %d = arith.subf %a, %m : f32
    %e = arith.subf %b, %m : f32
    %p0 = math.exp %d : f32
    %q0 = math.exp %e : f32
    %p = arith.select %a_empty, %zero, %p0 : f32
    %q = arith.select %b_empty, %zero, %q0 : f32
    %s = arith.addf %p, %q : f32
    %w0 = arith.divf %p, %s : f32
    %some = arith.cmpf ogt, %s, %zero : f32
    %w = arith.select %some, %w0, %zero : f32
    %one = arith.constant true
    %a_has = arith.xori %a_empty, %one : i1
    %row = mlafix.load %x[%t] if %a_has : !mat -> !tile
    %ws = mlafix.splat %w : f32 -> !tile
    %scaled = arith.mulf %ws, %row : !tile
    mlafix.store %scaled, %out[%t] : !tile, !mat
  }
}

// The kernel tests the result for NaN and replaces it.
mlafix.kernel @nan_replaced(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %a_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"},
    %b_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %a = mlafix.load %a_lse[%t] : !vec -> f32
    %b = mlafix.load %b_lse[%t] : !vec -> f32
    %m = arith.maximumf %a, %b : f32
    %d = arith.subf %a, %m : f32
    %p = math.exp %d : f32
    %is = arith.cmpf oeq, %p, %p : f32
    %w = arith.select %is, %p, %zero : f32
    mlafix.store %w, %out[%t] : f32, !vec
  }
}

// Only live rows are stored: the predicate of the store is isfinite of the lse.
mlafix.kernel @stored_where_live(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %lse[%t] : !vec -> f32
    %live = math.isfinite %a : f32
    %d = arith.subf %a, %a : f32
    %p = math.exp %d : f32
    mlafix.store %p, %out[%t] if %live : f32, !vec
  }
}

// A running maximum. A branch leaves out empty parts. If all parts are empty, a select replaces the quotient 0 / 0.
mlafix.kernel @online(%out: !mat {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %parts: !mats {mlafix.dims = ["k", "n", "D"], mlafix.access = "read"},
    %part_lses: !partials {mlafix.dims = ["k", "n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !mat
  %k = memref.dim %parts, %c0 : !mats
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %none = arith.constant 0xFF800000 : f32
    %inf = arith.constant 0x7F800000 : f32
    %nothing = mlafix.splat %zero : f32 -> !tile
    %m, %s, %acc = scf.for %i = %c0 to %k step %c1 iter_args(%mi = %none, %si = %zero, %ai = %nothing) -> (f32, f32, !tile) {
      %l = mlafix.load %part_lses[%i, %t] : !partials -> f32
      %size = math.absf %l : f32
      %live = arith.cmpf olt, %size, %inf : f32
      %r:3 = scf.if %live -> (f32, f32, !tile) {
        %row = mlafix.load %parts[%i, %t] : !mats -> !tile
        %mn = arith.maximumf %mi, %l : f32
        %d = arith.subf %mi, %mn : f32
        %alpha = math.exp %d : f32
        %e = arith.subf %l, %mn : f32
        %p = math.exp %e : f32
        %s1 = arith.mulf %si, %alpha : f32
        %sn = arith.addf %s1, %p : f32
        %alphas = mlafix.splat %alpha : f32 -> !tile
        %ps = mlafix.splat %p : f32 -> !tile
        %a1 = arith.mulf %ai, %alphas : !tile
        %a2 = arith.mulf %row, %ps : !tile
        %an = arith.addf %a1, %a2 : !tile
        scf.yield %mn, %sn, %an : f32, f32, !tile
      } else {
        scf.yield %mi, %si, %ai : f32, f32, !tile
      }
      scf.yield %r#0, %r#1, %r#2 : f32, f32, !tile
    }
    %ss = mlafix.splat %s : f32 -> !tile
    %q = arith.divf %acc, %ss : !tile
    %some = arith.cmpf ogt, %m, %none : f32
    %r = arith.select %some, %q, %nothing : !tile
    mlafix.store %r, %out[%t] : !tile, !mat
  }
}

// The weights of all splits of a row at once. If the maximum of the lses is not finite, zeros replace the weights.
mlafix.kernel @splits(%out: !mat {mlafix.dims = ["n", "k"], mlafix.access = "write"}, %split_lse: !mat {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !mat
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %l = mlafix.load %split_lse[%t] : !mat -> !lses
    %m = mlafix.reduce max %l : !lses
    %live = math.isfinite %m : f32
    %safe = arith.select %live, %m, %zero : f32
    %ms = mlafix.splat %safe : f32 -> !lses
    %d = arith.subf %l, %ms : !lses
    %p = math.exp %d : !lses
    %s = mlafix.reduce add %p : !lses
    %ss = mlafix.splat %s : f32 -> !lses
    %w = arith.divf %p, %ss : !lses
    %none = mlafix.splat %zero : f32 -> !lses
    %r = arith.select %live, %w, %none : !lses
    mlafix.store %r, %out[%t] : !lses, !mat
  }
}

// The weight 0 of an empty state multiplies a row of gamma. This row is not the payload of the state, so the product is
// 0. The kernel @algebra scales an lse, but the merge itself is an operation on states.
mlafix.kernel @other_rows(%out: !mat {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %gamma: !mat {mlafix.dims = ["one", "D"], mlafix.access = "read"},
    %x: !mat {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !mat
  mlafix.forall (%t) in (%n) {
    %l = mlafix.load %lse[%t] : !vec -> f32
    %none = arith.constant 0xFF800000 : f32
    %empty = arith.cmpf oeq, %l, %none : f32
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %w = arith.select %empty, %zero, %one : f32
    %ws = mlafix.splat %w : f32 -> !tile
    %g = mlafix.load %gamma[%c0] : !mat -> !tile
    %r = arith.mulf %ws, %g : !tile
    mlafix.store %r, %out[%t] : !tile, !mat
  }
}
mlafix.kernel @algebra(%out: !mat {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %out_lse: !vec {mlafix.dims = ["n"], mlafix.access = "write"},
    %x: !mat {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %y: !mat {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %a_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %b_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !mat
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %a_lse[%t] : !vec -> f32
    %half = arith.constant 0.5 : f32
    %scaled = arith.mulf %a, %half : f32
    %row = mlafix.load %x[%t] : !mat -> !tile
    %p = mlafix.make_state %row lse %scaled : !tile -> !mlafix.state<"D", e>
    %q = mlafix.load_state %y[%t] lse %b_lse[%t] : !mat, !vec -> !mlafix.state<"D", e>
    %m = mlafix.merge %p, %q : !mlafix.state<"D", e>
    mlafix.store_state %m to %out[%t] lse %out_lse[%t] : !mlafix.state<"D", e>, !mat, !vec
  }
}

// An lse that is loaded twice before it is written is one value: the analysis treats both loads alike.
mlafix.kernel @in_place(%lse: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %other_lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %lse, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %lse[%t] : !vec -> f32
    %live = math.isfinite %a : f32
    scf.if %live {
      %again = mlafix.load %lse[%t] : !vec -> f32
      %b = mlafix.load %other_lse[%t] : !vec -> f32
      %d = arith.subf %b, %again : f32
      %e = math.exp %d : f32
      mlafix.store %e, %lse[%t] : f32, !vec
    }
  }
}
