// States become a maximum, a sum and an accumulator. The comments name the clause of docs/Contract.md that each line
// follows.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-states),canonicalize,cse)" --split-input-file | FileCheck %s

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!state = !mlafix.state<"D", e>

// CHECK-LABEL: @merge
mlafix.kernel @merge(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %out_lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
    %lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read"}, %p: i1) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  // CHECK-DAG: %[[NEGINF:.*]] = arith.constant 0xFF800000 : f32
  // CHECK-DAG: %[[INF:.*]] = arith.constant 0x7F800000 : f32
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  // CHECK-DAG: %[[NEGZERO:.*]] = arith.constant -0.000000e+00 : f32
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
  // CHECK-DAG: %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
  // CHECK-DAG: %[[LN2:.*]] = arith.constant 0.693147182 : f32
  // CHECK-DAG: %[[MINUS_LN2:.*]] = arith.constant -0.693147182 : f32
  mlafix.forall (%t, %h) in (%n, %n) {
    // An excluded row is not loaded (N5): its lse is -inf, and its payload is never used.
    // CHECK: %[[ACC0:.*]] = mlafix.load %x[%[[T:.*]], %[[H:.*]]] if %p : memref<{{.*}}> -> tensor<?xf32
    // CHECK: %[[RAW0:.*]] = mlafix.load %lse[%[[H]], %[[T]]] if %p else %[[NEGINF]]
    // An lse of +inf means an empty state, too (N2).
    // CHECK: %[[ISINF:.*]] = arith.cmpf oeq, %[[RAW0]], %[[INF]]
    // CHECK: %[[M0:.*]] = arith.select %[[ISINF]], %[[NEGINF]], %[[RAW0]]
    %a = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] if %p : !rows, !lses -> !state
    // CHECK: %[[ACC1:.*]] = mlafix.load %x[%[[H]], %[[T]]] :
    // CHECK: %[[M1:.*]] = arith.select
    %b = mlafix.load_state %x[%h, %t] lse %lse[%t, %h] : !rows, !lses -> !state
    // NaN propagates (N6). The reference, which is subtracted from both lses, is their maximum, or 0 if both states are
    // empty (N3).
    // CHECK: %[[MAX:.*]] = arith.maximumf %[[M0]], %[[M1]]
    // CHECK: %[[EMPTY:.*]] = arith.cmpf oeq, %[[MAX]], %[[NEGINF]]
    // CHECK: %[[REF:.*]] = arith.select %[[EMPTY]], %[[ZERO]], %[[MAX]]
    // The state with the larger lse has weight 1.
    // CHECK: %[[LESS:.*]] = arith.cmpf olt, %[[M0]], %[[M1]]
    // CHECK: %[[LEAST:.*]] = arith.select %[[LESS]], %[[M0]], %[[M1]]
    // CHECK: %[[D:.*]] = arith.subf %[[LEAST]], %[[REF]]
    // The rounding errors of the difference and the exponent are corrected (N10).
    // CHECK: %[[BACK:.*]] = arith.subf %[[D]], %[[LEAST]]
    // CHECK: %[[AGAIN:.*]] = arith.subf %[[D]], %[[BACK]]
    // CHECK: %[[LOST0:.*]] = arith.subf %[[LEAST]], %[[AGAIN]]
    // CHECK: %[[LOST1:.*]] = arith.addf %[[REF]], %[[BACK]]
    // CHECK: %[[LOST:.*]] = arith.subf %[[LOST0]], %[[LOST1]]
    // CHECK: %[[E:.*]] = arith.mulf %[[D]], %[[LOG2E]]
    // CHECK: %[[POWER:.*]] = math.exp2 %[[E]]
    // CHECK: %[[REST0:.*]] = math.fma %[[E]], %[[MINUS_LN2]], %[[D]]
    // CHECK: %[[REST:.*]] = arith.addf %[[REST0]], %[[LOST]]
    // CHECK: %[[NONE:.*]] = arith.cmpf oeq, %[[POWER]], %[[ZERO]]
    // CHECK: %[[EXACT:.*]] = math.fma %[[POWER]], %[[REST]], %[[POWER]]
    // CHECK: %[[W:.*]] = arith.select %[[NONE]], %[[ZERO]], %[[EXACT]]
    // CHECK: %[[W0:.*]] = arith.select %[[LESS]], %[[W]], %[[ONE]]
    // CHECK: %[[DEAD0:.*]] = arith.{{andi|select}} %[[LESS]], %[[NONE]]
    // CHECK: %[[W1:.*]] = arith.select %[[LESS]], %[[ONE]], %[[W]]
    // A payload of weight zero is replaced before the multiplication (N5), by the neutral element of addition (N4).
    // CHECK: %[[P0:.*]] = arith.select %[[DEAD0]], %{{.*}}, %[[ACC0]]
    // CHECK: arith.mulf %{{.*}}, %[[P0]]
    // CHECK: %[[P1:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ACC1]]
    // CHECK: math.fma %{{.*}}, %[[P1]], %{{.*}} : tensor
    %m = mlafix.merge %a, %b : !state
    // There is one division, at the store. An empty result is stored as a payload of +0.0 and an lse of -inf (N1).
    // CHECK: arith.divf %[[ONE]], %{{.*}} fastmath<arcp>
    // CHECK-NOT: arith.divf
    // CHECK: %[[ROW:.*]] = arith.select %[[EMPTY]]
    // CHECK: mlafix.store %[[ROW]], %out[%[[T]], %[[H]]] if %p
    // CHECK: math.log2
    // CHECK: math.fma %{{.*}}, %[[LN2]], %[[MAX]]
    // CHECK: %[[LSE:.*]] = arith.select %[[EMPTY]], %[[NEGINF]]
    // CHECK: mlafix.store %[[LSE]], %out_lse[%[[H]], %[[T]]] if %p
    mlafix.store_state %m to %out[%t, %h] lse %out_lse[%h, %t] if %p : !state, !rows, !lses
  }
}

// A running merge carries three values through scf.for, and divides once.
// CHECK-LABEL: @running
mlafix.kernel @running(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
    %lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read"}, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    // CHECK: %[[R:.*]]:3 = scf.for {{.*}} iter_args(%[[M:.*]] = %{{.*}}, %[[S:.*]] = %{{.*}}, %[[A:.*]] = %{{.*}}) -> (f32, f32, tensor<?xf32, #mlafix.dim<"D">>)
    // CHECK-NOT: arith.divf
    // CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, tensor
    %r = scf.for %i = %c0 to %k step %c1 iter_args(%acc = %e) -> (!state) {
      %s = mlafix.load_state %x[%t, %i] lse %lse[%i, %t] : !rows, !lses -> !state
      %m = mlafix.merge %acc, %s : !state
      scf.yield %m : !state
    }
    // CHECK: arith.divf
    mlafix.store_state %r to %out[%t, %c0] : !state, !rows
  }
}

// CHECK-LABEL: @select_and_rebase
mlafix.kernel @select_and_rebase(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %out_lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
    %lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read"}, %p: i1, %q: i1) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %n) {
    %a = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : !rows, !lses -> !state
    %b = mlafix.load_state %x[%h, %t] lse %lse[%t, %h] : !rows, !lses -> !state
    // A select of states selects the maximum, the sum and the accumulator. The sums need no select here: both are 1.
    // CHECK: %[[MAX:.*]] = arith.select %p, %{{.*}}, %{{.*}} : f32
    // CHECK: arith.select %p, %{{.*}}, %{{.*}} : tensor
    %s = arith.select %p, %a, %b : !state
    // mlafix.mask also replaces the sum, since the sum of a masked state may be NaN.
    // CHECK: arith.select %q, %{{.*}}, %{{.*}} : f32
    // CHECK: %[[MASKED:.*]] = arith.select %q, %[[MAX]]
    %m = mlafix.mask %s, %q : !state
    // lse_2 = lse_e * log2(e) (N8)
    // CHECK: %[[PRODUCT:.*]] = arith.mulf %[[MASKED]], %{{.*}} : f32
    // A finite lse stays finite, since an infinite lse means an empty state.
    // CHECK: %[[LOW:.*]] = arith.minimumf %[[PRODUCT]]
    // CHECK: %[[FINITE:.*]] = arith.maximumf %[[LOW]]
    // CHECK: %[[EMPTY:.*]] = arith.cmpf oeq, %[[MASKED]]
    // CHECK: arith.select %[[EMPTY]], %[[MASKED]], %[[FINITE]] : f32
    %r = mlafix.rebase %m : !state -> !mlafix.state<"D", 2>
    mlafix.store_state %r to %out[%t, %h] lse %out_lse[%h, %t] : !mlafix.state<"D", 2>, !rows, !lses
  }
}

!bytes = memref<?x?x?xf8E4M3FN, strided<[?, ?, 1], offset: ?>>

// CHECK-LABEL: @optional_and_scaled
mlafix.kernel @optional_and_scaled(
    %out: !bytes {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read", mlafix.optional},
    %lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read", mlafix.optional}, %scale: f32, %l: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !bytes
  mlafix.forall (%t, %h) in (%n, %n) {
    // A load of a state gives the identity unless both tensors, the rows and the lses, are present.
    // CHECK: %[[X:.*]] = mlafix.present %x
    // CHECK: %[[LSE:.*]] = mlafix.present %lse
    // CHECK: %[[BOTH:.*]] = arith.andi %[[LSE]], %[[X]]
    // CHECK: %[[ROW:.*]] = mlafix.load %x{{.*}} if %[[BOTH]]
    // CHECK: mlafix.load %lse{{.*}} if %[[BOTH]] else %{{.*}}
    %a = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : !rows, !lses -> !state
    %row = mlafix.load %x[%t, %h] : !rows -> tensor<?xf32, #mlafix.dim<"D">>
    // mlafix.make_state makes a state from any row and lse. An lse of +inf means an empty state, too (N2).
    // CHECK: %[[INF:.*]] = arith.cmpf oeq, %l, %{{.*}}
    // CHECK: arith.select %[[INF]], %{{.*}}, %l
    %b = mlafix.make_state %row lse %l : tensor<?xf32, #mlafix.dim<"D">> -> !state
    %m = mlafix.merge %a, %b : !state
    // 1 / scale is computed once, correctly rounded. Each element is multiplied once.
    // CHECK: %[[INV:.*]] = arith.divf %{{.*}}, %{{.*}} fastmath<arcp>
    // CHECK: %[[SCALE:.*]] = arith.divf %{{.*}}, %scale : f32
    // CHECK: %[[FACTOR:.*]] = arith.mulf %[[INV]], %[[SCALE]] : f32
    // CHECK: %[[TILE:.*]] = mlafix.splat %[[FACTOR]]
    // CHECK: arith.mulf %{{.*}}, %[[TILE]] : tensor
    // CHECK-NOT: arith.mulf {{.*}} : tensor
    // CHECK: mlafix.store %{{.*}}, %out
    mlafix.store_state %m to %out[%t, %h] scale %scale : !state, !bytes
  }
}

// -----

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>

// For three states, each weight is an exponential. In base 2, an exponential is one instruction.
// CHECK-LABEL: @three
mlafix.kernel @three(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %lse: !lses {mlafix.dims = ["n"], mlafix.access = "read"}, %one: index, %two: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // CHECK: %[[D:.*]] = arith.subf
    // CHECK: math.exp2 %[[D]]
    // CHECK: math.exp2
    // CHECK: math.exp2
    // CHECK-NOT: math.exp2
    // CHECK: mlafix.store
    %a = mlafix.load_state %x[%t] lse %lse[%t] : !rows, !lses -> !mlafix.state<"D", 2>
    %b = mlafix.load_state %x[%one] lse %lse[%one] : !rows, !lses -> !mlafix.state<"D", 2>
    %c = mlafix.load_state %x[%two] lse %lse[%two] : !rows, !lses -> !mlafix.state<"D", 2>
    %m = mlafix.merge %a, %b, %c : !mlafix.state<"D", 2>
    mlafix.store_state %m to %out[%t] : !mlafix.state<"D", 2>, !rows
  }
}

// -----

!col = memref<?xi32, strided<[?], offset: ?>>
!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>

// argmax finds the maximum, and then the smallest index of an element that is NaN or greater than `below`, the largest
// float less than the maximum. If the maximum is NaN, `below` is +inf, so only the index of a NaN element is found.
// CHECK-LABEL: @best
// CHECK: %[[ROW:.*]] = mlafix.load
// CHECK: %[[MAX:.*]] = mlafix.reduce max %[[ROW]]
// CHECK: %[[BITS:.*]] = arith.bitcast %[[MAX]] : f32 to i32
// CHECK: %[[NAN:.*]] = arith.cmpf uno, %[[MAX]], %[[MAX]]
// CHECK: %[[BELOW:.*]] = arith.select %[[NAN]], %{{.*}}, %{{.*}} : f32
// CHECK: %[[ALL:.*]] = mlafix.splat %[[BELOW]]
// CHECK: %[[HERE:.*]] = arith.cmpf ugt, %[[ROW]], %[[ALL]]
// CHECK: %[[IDS:.*]] = mlafix.iota
// CHECK: %[[LEFT:.*]] = arith.select %[[HERE]], %[[IDS]]
// CHECK: mlafix.reduce min %[[LEFT]]
mlafix.kernel @best(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %i = mlafix.arg_reduce max %v : !tile
    mlafix.store %i, %y[%t] : i32, !col
  }
}

// -----

// top_k reduces keys once for each result. The high bits of a key order the elements, and the low bits hold the
// inverted index. After each result, an addition makes the keys of found elements less than all other keys.
!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!col = memref<?xi32, strided<[1], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>
// CHECK-LABEL: mlafix.kernel @best_two
// CHECK: %[[ROW:.*]] = mlafix.load
// CHECK: arith.cmpf uno, %[[ROW]], %[[ROW]]
// CHECK: %[[IDS:.*]] = mlafix.iota
// CHECK: %[[LOW:.*]] = arith.extui {{.*}} : tensor<?xi32, #mlafix.dim<"D">> to tensor<?xi64, #mlafix.dim<"D">>
// CHECK: %[[KEYS:.*]] = arith.ori %{{.*}}, %[[LOW]]
// CHECK: %[[FIRST:.*]] = mlafix.reduce max %[[KEYS]]
// CHECK: %[[STEP:.*]] = arith.subi %c-9223372036854775808_i64, %[[FIRST]]
// CHECK: %[[ALL:.*]] = mlafix.splat %[[STEP]]
// CHECK: %[[TURNED:.*]] = arith.addi %[[KEYS]], %[[ALL]]
// CHECK: %[[MOST:.*]] = mlafix.reduce max %[[TURNED]]
// CHECK: arith.subi %[[MOST]], %[[STEP]]
// CHECK-NOT: mlafix.reduce
mlafix.kernel @best_two(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %best:4 = mlafix.top_k %v : !tile -> f32, f32, i32, i32
    mlafix.store %best#3, %y[%t] : i32, !col
  }
}

// -----

// A maximum (any) or minimum (all) of i1 becomes a reduction of the integers 0 and 1.
!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!col = memref<?xi1, strided<[1], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>
// CHECK-LABEL: mlafix.kernel @all
// CHECK: %[[ONES:.*]] = arith.extui %{{.*}} : tensor<?xi1, #mlafix.dim<"D">> to tensor<?xi32, #mlafix.dim<"D">>
// CHECK: %[[MIN:.*]] = mlafix.reduce min %[[ONES]]
// CHECK: arith.cmpi sgt, %[[MIN]]
mlafix.kernel @all(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %live = arith.cmpf oeq, %v, %v : !tile
    %all = mlafix.reduce min %live : tensor<?xi1, #mlafix.dim<"D">>
    mlafix.store %all, %y[%t] : i1, !col
  }
}

// -----

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!col = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>

// Only the sum of exponentials of x - max(x) is used, so subnormal terms may be flushed to zero.
// CHECK-LABEL: @summed
// CHECK: math.exp %{{.*}} fastmath<afn>
mlafix.kernel @summed(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %most = mlafix.reduce max %v : !tile
    %all = mlafix.splat %most : f32 -> !tile
    %below = arith.subf %v, %all : !tile
    %e = math.exp %below : !tile
    %sum = mlafix.reduce add %e : !tile
    mlafix.store %sum, %y[%t] : f32, !col
  }
}

// If the exponentials are stored, subnormal ones must stay.
// CHECK-LABEL: @softmax
// CHECK: math.exp %{{.*}} :
mlafix.kernel @softmax(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %most = mlafix.reduce max %v : !tile
    %all = mlafix.splat %most : f32 -> !tile
    %below = arith.subf %v, %all : !tile
    %e = math.exp %below : !tile
    %sum = mlafix.reduce add %e : !tile
    %sums = mlafix.splat %sum : f32 -> !tile
    %z = arith.divf %e, %sums : !tile
    mlafix.store %z, %y[%t] : !tile, !rows
  }
}

// If the maximum of another row is subtracted, the largest term may be subnormal itself, so no term may be flushed.
// CHECK-LABEL: @another
// CHECK: math.exp %{{.*}} :
mlafix.kernel @another(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                       %z: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %w = mlafix.load %z[%t] : !rows -> !tile
    %most = mlafix.reduce max %w : !tile
    %all = mlafix.splat %most : f32 -> !tile
    %below = arith.subf %v, %all : !tile
    %e = math.exp %below : !tile
    %sum = mlafix.reduce add %e : !tile
    mlafix.store %sum, %y[%t] : f32, !col
  }
}
