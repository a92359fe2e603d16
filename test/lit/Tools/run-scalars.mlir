// Arguments that are no single tensors are checked before --debug follows the rows.
// REQUIRES: mlafix-run
// RUN: %mlafix-run %s --kernel fill --shape y=2 --arg k=3 --debug | FileCheck %s
// RUN: not %mlafix-run %s --kernel fill --shape y=2 --debug 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not %mlafix-run %s --kernel fill --shape y=2 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not %mlafix-run %s --kernel fill --shape y=2 --arg k=3x --debug 2>&1 | FileCheck %s --check-prefix=WRONG --implicit-check-not=row
// RUN: not %mlafix-run %s --kernel first_of --shape y=2 --debug 2>&1 | FileCheck %s --check-prefix=LIST

// CHECK: row [0]: k 3
// NONE: mlafix-run: error: argument "k": expected --arg k=VALUE, got none
// WRONG: mlafix-run: error: argument "k": expected an integer that fits i32, got "3x"
// LIST: mlafix-run: error: argument "x": expected a kernel of scalars and single tensors, got an argument of several tensors

!ints = memref<?xi32, strided<[?], offset: ?>>
!lists = memref<?x?xi32, strided<[?, ?], offset: ?>>

mlafix.kernel @fill(%y: !ints {mlafix.dims = ["n"], mlafix.access = "write"}, %k: i32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !ints
  mlafix.forall (%t) in (%n) {
    mlafix.print "k {}", %k : i32
    mlafix.store %k, %y[%t] : i32, !ints
  }
}

mlafix.kernel @first_of(%y: !ints {mlafix.dims = ["n"], mlafix.access = "write"},
    %x: !lists {mlafix.dims = ["", "n"], mlafix.access = "read", mlafix.list = 2}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !ints
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%c0, %t] : !lists -> i32
    mlafix.store %v, %y[%t] : i32, !ints
  }
}
