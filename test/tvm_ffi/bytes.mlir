// y[t] = x[t], both of bytes: a tensor of bool may be read as bytes, but not written as such.
!rows = memref<?x?xui8, strided<[?, 1], offset: ?>>
!tile = tensor<?xi8, #mlafix.dim<"D">>

mlafix.kernel @copy_bytes(
    %y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    mlafix.store %v, %y[%t] : !tile, !rows
  }
}
