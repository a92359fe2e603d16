// Kernels and arguments whose names are not valid in C or C++, or that the header uses itself.
!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>

mlafix.kernel @class(
    %int: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %device: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read", mlafix.optional},
    %device_: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %a.b: f32, %a$b: i32, %0: i1, %NULL: i64) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %int, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %device[%t] : !rows -> !tile
    %w = mlafix.load %device_[%t] : !rows -> !tile
    %sum = arith.addf %v, %w : !tile
    mlafix.store %sum, %int[%t] : !tile, !rows
  }
}

mlafix.kernel @names_load(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                          %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    mlafix.store %v, %y[%t] : !tile, !rows
  }
}

mlafix.kernel @names_class_bind(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                                %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    mlafix.store %v, %y[%t] : !tile, !rows
  }
}
