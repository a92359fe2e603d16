!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>

mlafix.kernel @by_hand(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %lse: !lses {mlafix.dims = ["n"], mlafix.access = "read"}, %m: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %l = mlafix.load %lse[%t] : !lses -> f32
    %d = arith.subf %l, %m : f32
    %p = math.exp %d : f32
    %row = mlafix.load %x[%t] : !rows -> tensor<?xf32, #mlafix.dim<"D">>
    %ps = mlafix.splat %p : f32 -> tensor<?xf32, #mlafix.dim<"D">>
    %scaled = arith.mulf %ps, %row : tensor<?xf32, #mlafix.dim<"D">>
    mlafix.store %scaled, %out[%t] : tensor<?xf32, #mlafix.dim<"D">>, !rows
  }
}
