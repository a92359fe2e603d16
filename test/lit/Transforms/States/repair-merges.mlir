// If the result of a running merge is not finite, a branch merges the states again. It weighs each state once, relative
// to the largest lse (N5).
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-repair-merges{target=x86-64}),canonicalize,cse)" | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-repair-merges{target=sm_90 machine=weighedOnceElements=64}),canonicalize,cse)" | FileCheck %s --check-prefixes=CHECK,GPU

!rows = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!out = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!state = !mlafix.state<64, e>

// CHECK-LABEL: @loop
// CHECK: %[[ALL:.*]] = scf.for %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}})
// CHECK: mlafix.merge %[[ACC]], %
// CPU: %[[BAD:.*]] = mlafix.has_nonfinite %[[ALL]]
// CPU: %[[WHOLE:.*]] = scf.if %[[BAD]] -> (!mlafix.state<64, e>) {
// CPU: %[[MAX:.*]] = mlafix.max_of %[[ALL]]
// CPU: %[[FIRST:.*]] = mlafix.reference %[[MAX]]
// CPU: %[[AGAIN:.*]] = scf.for %{{.*}} iter_args(%[[RUNNING:.*]] = %[[FIRST]])
// CPU: %[[PART:.*]] = mlafix.load_state
// CPU: mlafix.merge to_first %[[RUNNING]], %[[PART]]
// CPU: loop_annotation
// CPU: %[[REPAIRED:.*]] = mlafix.repair %[[ALL]], %[[AGAIN]]
// CPU: scf.yield %[[REPAIRED]]
// CPU: scf.yield %[[ALL]]
// CPU: mlafix.store_state %[[WHOLE]]
// On a GPU, mlafix-chunk-merges already weighs each state once.
// GPU-NOT: mlafix.has_nonfinite
// GPU: mlafix.store_state %[[ALL]]
mlafix.kernel @loop(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !out
  %count = memref.dim %v, %c1 : !rows
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %e) -> !state {
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !rows, !lses -> !state
      %m = mlafix.merge %acc, %x : !state
      scf.yield %m : !state
    }
    mlafix.store_state %r to %out[%t] : !state, !out
  }
}

// The result of nested loops is merged with states that are loaded before and after the loops. The branch merges all
// these states again, relative to one reference.
// CHECK-LABEL: @nested
// CHECK: %[[BEFORE:.*]] = mlafix.load_state
// CHECK: scf.for
// CHECK: scf.for
// CHECK: mlafix.load_state
// CHECK: %[[BEHIND:.*]] = mlafix.load_state
// CHECK: %[[ALL:.*]] = mlafix.merge
// CHECK: scf.if
// CHECK: %[[FIRST:.*]] = mlafix.reference
// CHECK: %[[OUTER:.*]] = scf.for %{{.*}} iter_args(%[[SOFAR:.*]] = %[[FIRST]])
// CHECK: scf.for %{{.*}} iter_args(%[[INNER:.*]] = %[[SOFAR]])
// CHECK: mlafix.merge to_first %[[INNER]],
// CHECK: mlafix.merge to_first %[[OUTER]], %[[BEFORE]], %[[BEHIND]] :
// CHECK: mlafix.repair %[[ALL]],
mlafix.kernel @nested(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}, %p: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %out, %c0 : !out
  %count = memref.dim %v, %c1 : !rows
  mlafix.forall (%t) in (%n) {
    %before = mlafix.load_state %v[%t, %c0] lse %s[%t, %c0] : !rows, !lses -> !state
    %e = mlafix.identity : !state
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %e) -> !state {
      %i = scf.for %j = %k to %count step %c1 iter_args(%a = %acc) -> !state {
        %x = mlafix.load_state %v[%t, %j] lse %s[%t, %j] : !rows, !lses -> !state
        %m = mlafix.merge %a, %x : !state
        scf.yield %m : !state
      }
      scf.yield %i : !state
    }
    %behind = mlafix.load_state %v[%t, %c2] lse %s[%t, %c2] if %p : !rows, !lses -> !state
    %all = mlafix.merge %before, %r, %behind : !state
    mlafix.store_state %all to %out[%t] : !state, !out
  }
}

// If lses are computed from rows, lanes would wait for each other in the branch, so no branch is added.
// CHECK-LABEL: @scores
// CHECK-NOT: mlafix.reference
// CHECK: mlafix.merge %
mlafix.kernel @scores(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !out
  %count = memref.dim %v, %c1 : !rows
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %e) -> !state {
      %row = mlafix.load %v[%t, %k] : !rows -> tensor<64xf32, #mlafix.dim<64>>
      %score = mlafix.reduce add %row : tensor<64xf32, #mlafix.dim<64>>
      %x = mlafix.make_state %row lse %score : tensor<64xf32, #mlafix.dim<64>> -> !state
      %m = mlafix.merge %acc, %x : !state
      scf.yield %m : !state
    }
    mlafix.store_state %r to %out[%t] : !state, !out
  }
}

// On a GPU, a loop with a small constant number of iterations becomes one merge later. This merge weighs each state
// once, so no branch is added.
// CHECK-LABEL: @few
// CPU: mlafix.reference
// GPU-NOT: mlafix.reference
mlafix.kernel @few(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %out, %c0 : !out
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    %r = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %e) -> !state {
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !rows, !lses -> !state
      %m = mlafix.merge %acc, %x : !state
      scf.yield %m : !state
    }
    mlafix.store_state %r to %out[%t] : !state, !out
  }
}

// If only the lse of the result is used, no branch is added, since only payloads are repaired.
// CHECK-LABEL: @lse
// CHECK-NOT: mlafix.reference
mlafix.kernel @lse(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !out
  %count = memref.dim %v, %c1 : !rows
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %e) -> !state {
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !rows, !lses -> !state
      %m = mlafix.merge %acc, %x : !state
      scf.yield %m : !state
    }
    %lse = mlafix.lse_of %r : !state
    %row = mlafix.splat %lse : f32 -> tensor<64xf32, #mlafix.dim<64>>
    mlafix.store %row, %out[%t] : tensor<64xf32, #mlafix.dim<64>>, !out
  }
}

// A state that is merged twice is repaired separately, before the merge.
// CHECK-LABEL: @twice
// CHECK: %[[ALL:.*]] = scf.for
// CPU: %[[WHOLE:.*]] = scf.if
// CPU: mlafix.repair %[[ALL]],
// CPU: mlafix.merge %[[WHOLE]], %[[WHOLE]]
// GPU: mlafix.merge %[[ALL]], %[[ALL]]
mlafix.kernel @twice(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !out
  %count = memref.dim %v, %c1 : !rows
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %e) -> !state {
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !rows, !lses -> !state
      %m = mlafix.merge %acc, %x : !state
      scf.yield %m : !state
    }
    %two = mlafix.merge %r, %r : !state
    mlafix.store_state %two to %out[%t] : !state, !out
  }
}

// Each iteration of a loop merges the result of an earlier loop. That result is repaired before the loop, and the
// branch of the loop merges it as one state.
// CHECK-LABEL: @from_outside
// CHECK: %[[ONCE:.*]] = scf.for
// CPU: %[[WHOLE:.*]] = scf.if
// CPU: mlafix.repair %[[ONCE]],
// CPU: scf.for %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}})
// CPU: mlafix.merge %[[ACC]], %[[WHOLE]] :
// CPU: scf.for %{{.*}} iter_args(%[[AGAIN:.*]] = %{{.*}})
// CPU: mlafix.merge to_first %[[AGAIN]], %[[WHOLE]] :
mlafix.kernel @from_outside(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !out
  %count = memref.dim %v, %c1 : !rows
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    %once = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %e) -> !state {
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !rows, !lses -> !state
      %m = mlafix.merge %acc, %x : !state
      scf.yield %m : !state
    }
    %first = mlafix.load_state %v[%t, %c0] lse %s[%t, %c0] : !rows, !lses -> !state
    %all = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %first) -> !state {
      %m = mlafix.merge %acc, %once : !state
      scf.yield %m : !state
    }
    mlafix.store_state %all to %out[%t] : !state, !out
  }
}

// Each iteration of a loop merges the result of a merge before the loop. The branch of the loop merges this result as
// one state, and not the two states that it was merged from.
// CHECK-LABEL: @merge_from_outside
// CHECK: %[[TWO:.*]] = mlafix.merge
// CHECK-NOT: mlafix.merge to_first %{{.*}}, %{{.*}}, %
// CPU: mlafix.merge to_first %{{.*}}, %[[TWO]] :
mlafix.kernel @merge_from_outside(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !out
  %count = memref.dim %v, %c1 : !rows
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load_state %v[%t, %c0] lse %s[%t, %c0] : !rows, !lses -> !state
    %b = mlafix.load_state %v[%t, %c1] lse %s[%t, %c1] : !rows, !lses -> !state
    %two = mlafix.merge %a, %b : !state
    %e = mlafix.identity : !state
    %all = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %e) -> !state {
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !rows, !lses -> !state
      %m = mlafix.merge %acc, %x, %two : !state
      scf.yield %m : !state
    }
    mlafix.store_state %all to %out[%t] : !state, !out
  }
}
