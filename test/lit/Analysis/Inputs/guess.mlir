!vec = memref<?xf32, strided<[?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>

mlafix.kernel @guess(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"},
    %at: !ints {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %i = mlafix.load %at[%t] : !ints -> i32
    %p = arith.index_cast %i : i32 to index
    %v = mlafix.load %x[%p] : !vec -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}
