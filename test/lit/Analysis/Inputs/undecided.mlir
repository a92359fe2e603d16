// Every element is written for k = 1, but not for k = 2. The proofs decide neither, since they do not model t * k.
!vec = memref<?xf32, strided<[?], offset: ?>>
mlafix.kernel @undecided(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %k: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %i = arith.muli %t, %k : index
    mlafix.store %x, %out[%i] : f32, !vec
  }
}
