// Each row reads its output before it writes the output.
!vec = memref<?xf32, strided<[?], offset: ?>>
mlafix.kernel @read_first(%y: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %old = mlafix.load %y[%t] : !vec -> f32
    %sum = arith.addf %old, %x : f32
    mlafix.store %sum, %y[%t] : f32, !vec
  }
}
