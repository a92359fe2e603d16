// Proofs about divisions in the form that mlafix-define-edge-cases writes. A division of this form rounds down if its
// dividend is not negative.
// RUN: %mlafix-opt %s --mlafix-define-edge-cases --canonicalize --mlafix-prove --verify-diagnostics=only-expected -o /dev/null

!vec = memref<?xf32, strided<[?], offset: ?>>

mlafix.kernel @halves(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !vec -> f32
    %half = arith.floordivsi %t, %c2 : index
    // expected-remark @below {{out: one writer: refuted: n = 2, i = 1: out[0]}}
    mlafix.store %v, %out[%half] : f32, !vec
  }
}
// Half of a scalar may be negative.
// expected-remark @below {{out: one writer: proved}}
mlafix.kernel @half_of_a_scalar(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"}, %s: i32) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : i32
  %n = memref.dim %out, %c0 : !vec
  %half = arith.floordivsi %s, %c2 : i32
  %at = arith.index_cast %half : i32 to index
  mlafix.forall (%t) in (%n) {
    // expected-remark @below {{x: bounds: refuted: n = 1, s = -1, i = 0: x[-1]}}
    %v = mlafix.load %x[%at] : !vec -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}
