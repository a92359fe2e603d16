!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>

mlafix.kernel @copy(%y: !rows {mlafix.access = "write", mlafix.dims = ["n", "D"]}, %x: !rows {mlafix.access = "read", mlafix.dims = ["n", "D"]}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> tensor<?xf32, #mlafix.dim<"D">>
    mlafix.store %v, %y[%t] : tensor<?xf32, #mlafix.dim<"D">>, !rows
  }
}
