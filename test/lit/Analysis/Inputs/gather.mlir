!vec = memref<?xf32, strided<[?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>
mlafix.kernel @gather(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"},
    %idx: !ints {mlafix.dims = ["n"], mlafix.access = "read"}, %y: !vec {mlafix.dims = ["n"], mlafix.access = "update"}) attributes {} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %s = mlafix.load %idx[%t] : !ints -> i32
    %i = arith.index_cast %s : i32 to index
    %v = mlafix.load %x[%i] : !vec -> f32
    %next = arith.addi %t, %c1 : index
    mlafix.store %v, %y[%next] : f32, !vec
    mlafix.store %v, %out[%t] : f32, !vec
  }
}
