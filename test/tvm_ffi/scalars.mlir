// y[t] = factor * x[t] + bias[t] if `on` is true and t is less than `count` and `rows`, else y[t] = 0. The arguments
// include every kind of scalar.
!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!biases = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>

mlafix.kernel @scale_rows(
    %y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %bias: !biases {mlafix.dims = ["n"], mlafix.access = "read", mlafix.optional},
    %factor: f32, %count: i32, %on: i1, %rows: index {mlafix.at_most = "n"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %count_index = arith.index_cast %count : i32 to index
    %before = arith.cmpi slt, %t, %count_index : index
    %within = arith.cmpi slt, %t, %rows : index
    %both = arith.andi %before, %within : i1
    %live = arith.andi %both, %on : i1
    %v = mlafix.load %x[%t] if %live : !rows -> !tile
    %b = mlafix.load %bias[%t] if %live : !biases -> f32
    %f = mlafix.splat %factor : f32 -> !tile
    %bs = mlafix.splat %b : f32 -> !tile
    %scaled = arith.mulf %v, %f : !tile
    %sum = arith.addf %scaled, %bs : !tile
    mlafix.store %sum, %y[%t] : !tile, !rows
  }
}
