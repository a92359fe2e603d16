// Errors of kernels whose ranks send rows to each other: the place of the exchange, and accesses before and after it.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics

!staged = memref<?x?xf32, strided<[?, ?], offset: ?>>
// expected-error @below {{argument 'x': expected access "read" of a tensor of all ranks in a kernel without an exchange, got "update"; declare it Peers[In[…]]}}
mlafix.kernel @k(%x: !staged {mlafix.dims = ["ranks", "n"], mlafix.access = "update", mlafix.peers}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

!staged = memref<?x?xf32, strided<[?, ?], offset: ?>>
// expected-error @below {{argument 'x': expected access "update" of a tensor of all ranks in a kernel with an exchange, got "read"; declare it Peers[InOut[…]]}}
mlafix.kernel @k(%x: !staged {mlafix.dims = ["ranks", "n"], mlafix.access = "read", mlafix.peers}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    mlafix.exchange
  }
}

// -----

mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected a kernel with an exchange, got none}}
    %turn = mlafix.turn : index
  }
}

// -----

mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected a kernel with an argument of all ranks, got none}}
    mlafix.exchange
  }
}

// -----

!staged = memref<?x?xf32, strided<[?, ?], offset: ?>>
mlafix.kernel @k(%x: !staged {mlafix.dims = ["ranks", "n"], mlafix.access = "update", mlafix.peers}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    mlafix.exchange
    // expected-error @below {{expected one exchange, in the grid's own block, got a second}}
    mlafix.exchange
  }
}

// -----

!staged = memref<?x?xf32, strided<[?, ?], offset: ?>>
mlafix.kernel @k(%x: !staged {mlafix.dims = ["ranks", "n"], mlafix.access = "update", mlafix.peers}, %on: i1) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    scf.if %on {
      // expected-error @below {{expected one exchange, in the grid's own block, got one elsewhere}}
      mlafix.exchange
    }
  }
}

// -----

!staged = memref<?x?xf32, strided<[?, ?], offset: ?>>
mlafix.kernel @k(%x: !staged {mlafix.dims = ["ranks", "n"], mlafix.access = "update", mlafix.peers}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected every load of a tensor of all ranks after the exchange, got a load of 'x' before it}}
    %v = mlafix.load %x[%c0, %t] : !staged -> f32
    mlafix.exchange
  }
}

// -----

!staged = memref<?x?xf32, strided<[?, ?], offset: ?>>
mlafix.kernel @k(%x: !staged {mlafix.dims = ["ranks", "n"], mlafix.access = "update", mlafix.peers}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  mlafix.forall (%t) in (%c1) {
    mlafix.exchange
    scf.for %r = %c0 to %c1 step %c1 {
      // expected-error @below {{expected every store to a tensor of all ranks before the exchange, got a store to 'x' after it}}
      mlafix.store %one, %x[%r, %t] : f32, !staged
    }
  }
}

// -----

!rows = memref<?xf32, strided<[?], offset: ?>>
!staged = memref<?x?xf32, strided<[?, ?], offset: ?>>
mlafix.kernel @k(%x: !staged {mlafix.dims = ["ranks", "n"], mlafix.access = "update", mlafix.peers},
                 %y: !rows {mlafix.dims = ["n"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected every store to a tensor of this rank alone after the exchange, got a store to 'y' before it}}
    mlafix.store %one, %y[%t] : f32, !rows
    mlafix.exchange
  }
}
