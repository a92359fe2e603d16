// Integer arithmetic, conversions and loops get a defined result for all operands. Ops whose results are always defined
// stay unchanged.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-define-edge-cases))" --split-input-file --verify-diagnostics | FileCheck %s
// Folding the result gives defined constants, and never poison.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-define-edge-cases),canonicalize)" --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=FOLDED --implicit-check-not=ub.poison

!ints = memref<?xi32, strided<[?], offset: ?>>
!rows = memref<?x?xi32, strided<[?, 1], offset: ?>>
!tile = tensor<?xi32, #mlafix.dim<"D">>

// CHECK-LABEL: @shifts
// FOLDED-LABEL: @shifts
mlafix.kernel @shifts(%y: !ints {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %k: i32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !ints
  mlafix.forall (%t) in (%n) {
    // CHECK: %[[V:.*]] = mlafix.load
    %v = mlafix.load %y[%t] : !ints -> i32
    %c7 = arith.constant 7 : i32
    %c40 = arith.constant 40 : i32
    // CHECK: %[[MOST:.*]] = arith.constant 31 : i32
    // CHECK-NEXT: %[[BY:.*]] = arith.minui %k, %[[MOST]]
    // CHECK-NEXT: %[[LEFT:.*]] = arith.shli %[[V]], %[[BY]]
    // CHECK: %[[FITS:.*]] = arith.cmpi ule, %k, %[[MOST]]
    // CHECK: arith.select %[[FITS]], %[[LEFT]], %c0_i32
    %left = arith.shli %v, %k overflow<nsw, nuw> : i32
    // CHECK: arith.minui
    // CHECK-NEXT: arith.shrui
    // CHECK: %[[LOGICAL:.*]] = arith.select
    %logical = arith.shrui %left, %k exact : i32
    // An arithmetic right shift by 32 or more gives copies of the sign.
    // CHECK: %[[BY:.*]] = arith.minui %k
    // CHECK-NEXT: %[[SIGN:.*]] = arith.shrsi %[[LOGICAL]], %[[BY]] : i32
    %sign = arith.shrsi %logical, %k : i32
    // CHECK-NEXT: arith.shli %[[SIGN]], %{{.*}} : i32
    %known = arith.shli %sign, %c7 : i32
    // FOLDED: mlafix.store %c0_i32, %y
    %beyond = arith.shli %known, %c40 : i32
    mlafix.store %beyond, %y[%t] : i32, !ints
    // CHECK: %[[ROW:.*]] = mlafix.load {{.*}} -> tensor
    %row = mlafix.load %x[%t] : !rows -> !tile
    %by = mlafix.splat %v : i32 -> !tile
    // CHECK: mlafix.splat %{{.*}} : i32 -> tensor
    // CHECK: arith.minui {{.*}} : tensor
    // CHECK: arith.shrsi {{.*}} : tensor
    %rows = arith.shrsi %row, %by : !tile
    mlafix.store %rows, %x[%t] : !tile, !rows
  }
}

// CHECK-LABEL: @divisions
mlafix.kernel @divisions(%y: !ints {mlafix.dims = ["n"], mlafix.access = "write"}, %k: i32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !ints
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %y[%t] : !ints -> i32
    // CHECK: %[[IS_MINUS:.*]] = arith.cmpi eq, %k, %c-1_i32
    // CHECK: %[[IS_ZERO:.*]] = arith.cmpi eq, %k, %c0_i32
    // CHECK: %[[ODD:.*]] = arith.ori %[[IS_ZERO]], %[[IS_MINUS]]
    // CHECK: %[[BY:.*]] = arith.select %[[ODD]], %{{.*}}, %k
    // CHECK: %[[Q:.*]] = arith.divsi %[[V:.*]], %[[BY]] : i32
    // CHECK: %[[NEGATED:.*]] = arith.subi %{{.*}}, %[[V]]
    // CHECK: %[[A:.*]] = arith.select %{{.*}}, %[[NEGATED]], %[[Q]]
    %a = arith.divsi %v, %k exact : i32
    // CHECK: %[[BY:.*]] = arith.select %{{.*}}, %{{.*}}, %k
    // CHECK: %[[B:.*]] = arith.remsi %[[A]], %[[BY]]
    %b = arith.remsi %a, %k : i32
    // CHECK: %[[BY:.*]] = arith.select %{{.*}}, %{{.*}}, %k
    // CHECK: %[[C:.*]] = arith.divui %[[B]], %[[BY]]
    %c = arith.divui %b, %k : i32
    // CHECK: arith.remui %[[C]], %{{.*}}
    %d = arith.remui %c, %k : i32
    // CHECK: arith.divsi
    // CHECK: arith.remsi
    // CHECK: arith.xori
    // CHECK: arith.select
    %e = arith.floordivsi %d, %k : i32
    // CHECK: arith.divsi
    // CHECK: arith.remsi
    // CHECK: arith.cmpi sge
    // CHECK: arith.select
    %up = arith.ceildivsi %e, %k : i32
    // CHECK: arith.divui
    // CHECK: arith.remui
    // CHECK: %[[E:.*]] = arith.select
    %above = arith.ceildivui %up, %k : i32
    %c9 = arith.constant 9 : i32
    // CHECK: %[[F:.*]] = arith.divsi %[[E]], %c9_i32 : i32
    // CHECK-NEXT: mlafix.store %[[F]]
    %f = arith.divsi %above, %c9 : i32
    mlafix.store %f, %y[%t] : i32, !ints
  }
}

// CHECK-LABEL: @conversions
mlafix.kernel @conversions(%y: !ints {mlafix.dims = ["n"], mlafix.access = "write"}, %x: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !ints
  mlafix.forall (%t) in (%n) {
    // CHECK: %[[END:.*]] = arith.constant 2.14748365E+9 : f32
    // CHECK: %[[START:.*]] = arith.constant -2.14748365E+9 : f32
    // CHECK: %[[HIGH:.*]] = arith.cmpf oge, %x, %[[END]]
    // CHECK: %[[LOW:.*]] = arith.cmpf ole, %x, %[[START]]
    // CHECK: %[[INSIDE:.*]] = arith.andi
    // CHECK: %[[SAFE:.*]] = arith.select %[[INSIDE]], %x, %{{.*}} : f32
    // CHECK: %[[WHOLE:.*]] = arith.fptosi %[[SAFE]] : f32 to i32
    // CHECK: %[[LOWER:.*]] = arith.select %[[LOW]], %c-2147483648_i32, %[[WHOLE]]
    // CHECK: arith.select %[[HIGH]], %c2147483647_i32, %[[LOWER]]
    %i = arith.fptosi %x : f32 to i32
    // CHECK: arith.constant 4.2949673E+9 : f32
    // CHECK: arith.constant -1.000000e+00 : f32
    // CHECK: arith.fptoui
    %u = arith.fptoui %x : f32 to i32
    // CHECK: arith.addi %{{.*}}, %{{.*}} : i32
    %s = arith.addi %i, %u overflow<nsw> : i32
    // The pass removes fast-math flags, since they would allow results other than those of N9 and N10 in
    // docs/Dialect.md.
    // CHECK: arith.divf %{{.*}}, %{{.*}} : f32
    %f = arith.sitofp %s : i32 to f32
    %g = arith.divf %f, %x fastmath<fast> : f32
    %j = arith.fptosi %g : f32 to i32
    mlafix.store %j, %y[%t] : i32, !ints
  }
}

// CHECK-LABEL: @loops
mlafix.kernel @loops(%y: !ints {mlafix.dims = ["n"], mlafix.access = "write"}, %a: i32, %b: i32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !ints
  mlafix.forall (%t) in (%n) {
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %zero = arith.constant 0 : i32
    // The index of this loop is 64 bits wide and grows by 1, so it cannot overflow before it equals the bound. The loop
    // stays unchanged.
    %first = arith.constant 1 : index
    // CHECK: %[[ONE:.*]] = scf.for %{{.*}} = %c0 to %dim step %c1
    %one = scf.for %i = %c0 to %n step %first iter_args(%s = %zero) -> (i32) {
      %k = arith.index_cast %i : index to i32
      %next = arith.addi %s, %k : i32
      scf.yield %next : i32
    }
    // CHECK: %[[SOME:.*]] = arith.cmpi slt, %a, %b : i32
    // CHECK: %[[DISTANCE:.*]] = arith.subi %b, %a : i32
    // CHECK: %[[LAST:.*]] = arith.subi %[[DISTANCE]], %{{.*}} : i32
    // CHECK: %[[FURTHER:.*]] = arith.divui %[[LAST]], %{{.*}} : i32
    // CHECK: %[[WIDE:.*]] = arith.index_castui %[[FURTHER]] : i32 to index
    // CHECK: %[[MANY:.*]] = arith.addi %[[WIDE]], %{{.*}} : index
    // CHECK: %[[COUNT:.*]] = arith.select %[[SOME]], %[[MANY]], %{{.*}} : index
    // CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[COUNT]] step %{{[a-z0-9_]*}} iter_args(%[[S:.*]] = %[[ONE]])
    // CHECK-NEXT: %[[K:.*]] = arith.index_cast %[[I]] : index to i32
    // CHECK-NEXT: %[[BY:.*]] = arith.muli %[[K]], %c2_i32
    // CHECK-NEXT: %[[AT:.*]] = arith.addi %a, %[[BY]]
    // CHECK-NEXT: arith.addi %[[S]], %[[AT]]
    %two = scf.for %i = %a to %b step %c2 iter_args(%s = %one) -> (i32) : i32 {
      %next = arith.addi %s, %i : i32
      scf.yield %next : i32
    }
    // A loop with more iterations than the largest i32 still runs.
    // CHECK: %[[ALL:.*]] = arith.constant 4294967295 : index
    // FOLDED: scf.for %{{.*}} to %c4294967295
    %low = arith.constant -2147483648 : i32
    %high = arith.constant 2147483647 : i32
    // CHECK: scf.for %{{.*}} to %[[ALL]]
    %all = scf.for %i = %low to %high step %c1 iter_args(%s = %two) -> (i32) : i32 {
      %next = arith.addi %s, %i : i32
      scf.yield %next : i32
    }
    // With a step of at most 0, which only the launch knows, the loop has no iteration.
    // CHECK: arith.cmpi sgt, %b, %{{.*}}
    // CHECK: scf.for
    %any = scf.for %i = %a to %all step %b iter_args(%s = %zero) -> (i32) : i32 {
      %next = arith.addi %s, %i : i32
      scf.yield %next : i32
    }
    mlafix.store %any, %y[%t] : i32, !ints
  }
}

// -----

!ints = memref<?xi32, strided<[?], offset: ?>>

mlafix.kernel @never(%y: !ints {mlafix.dims = ["n"], mlafix.access = "write"}, %a: i32, %b: i32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !ints
  mlafix.forall (%t) in (%n) {
    %step = arith.constant -1 : i32
    // expected-error@+1 {{expected a step of at least 1, got -1}}
    scf.for %i = %a to %b step %step : i32 {
      mlafix.store %i, %y[%t] : i32, !ints
    }
  }
}

// -----

!floats = memref<?xf32, strided<[?], offset: ?>>

// A sine or cosine of an angle beyond 2^23 is NaN, also if the angle is a constant and the op folds.
// CHECK-LABEL: @angle
// CHECK: %[[MOST:.*]] = arith.constant 0x4B000000 : f32
// CHECK: %[[LE:.*]] = arith.cmpf ole, %a, %[[MOST]]
// CHECK: %[[LEAST:.*]] = arith.constant 0xCB000000 : f32
// CHECK: %[[GE:.*]] = arith.cmpf oge, %a, %[[LEAST]]
// CHECK: %[[IN:.*]] = arith.andi %[[LE]], %[[GE]]
// CHECK: %[[SIN:.*]] = math.sin %a
// CHECK: %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK: arith.select %[[IN]], %[[SIN]], %[[NAN]]
mlafix.kernel @angle(%y: !floats {mlafix.dims = ["n"], mlafix.access = "write"}, %a: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !floats
  mlafix.forall (%t) in (%n) {
    %s = math.sin %a : f32
    mlafix.store %s, %y[%t] : f32, !floats
  }
}

!longs = memref<?xi64, strided<[?], offset: ?>>

// MLIR would replace a cast to i32 and back by the original index. The pass therefore truncates to i32.
// CHECK-LABEL: @narrowed
// CHECK: %[[WIDE:.*]] = arith.index_cast %a : index to i64
// CHECK: arith.trunci %[[WIDE]] : i64 to i32
mlafix.kernel @narrowed(%y: !longs {mlafix.dims = ["n"], mlafix.access = "write"}, %a: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !longs
  mlafix.forall (%t) in (%n) {
    %narrow = arith.index_cast %a : index to i32
    %back = arith.index_cast %narrow : i32 to index
    %long = arith.index_cast %back : index to i64
    mlafix.store %long, %y[%t] : i64, !longs
  }
}

// minnum and maxnum of a number and NaN give the number; -0.0 is less than 0.0.
// CHECK-LABEL: @extrema
// CHECK: %[[X_NAN:.*]] = arith.cmpf uno, %a, %a
// CHECK: %[[X:.*]] = arith.select %[[X_NAN]], %b, %a
// CHECK: %[[Y_NAN:.*]] = arith.cmpf uno, %b, %b
// CHECK: %[[Y:.*]] = arith.select %[[Y_NAN]], %a, %b
// CHECK: arith.minimumf %[[X]], %[[Y]]
// CHECK: arith.maximumf
mlafix.kernel @extrema(%y: !floats {mlafix.dims = ["n"], mlafix.access = "write"}, %a: f32, %b: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !floats
  mlafix.forall (%t) in (%n) {
    %less = arith.minnumf %a, %b : f32
    %more = arith.maxnumf %less, %b : f32
    mlafix.store %more, %y[%t] : f32, !floats
  }
}
