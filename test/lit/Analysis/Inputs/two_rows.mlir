mlafix.kernel @two_rows(%out: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?xf32, strided<[?], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %number = arith.index_cast %t : index to i32
    %value = arith.sitofp %number : i32 to f32
    %c2 = arith.constant 2 : index
    %half = arith.divui %t, %c2 : index
    mlafix.store %value, %out[%half] : f32, memref<?xf32, strided<[?], offset: ?>>
  }
}
