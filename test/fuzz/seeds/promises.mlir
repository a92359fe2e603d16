!vec = memref<?xf32, strided<[?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>
mlafix.kernel @promises(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write", mlafix.fill = 0xFF800000 : f32},
    %to: !vec {mlafix.dims = ["m"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"},
    %slots: !ints {mlafix.dims = ["n"], mlafix.access = "read"}, %k: i32) attributes {bounds = "guard"} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %n = memref.dim %out, %c0 : !vec
  %m = memref.dim %to, %c0 : !vec
  %rest = arith.remsi %n, %c16 : index
  %whole = arith.cmpi eq, %rest, %c0 : index
  mlafix.assume %whole, "n % 16 == 0"
  mlafix.distinct %slots : !ints
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !vec -> f32
    %s = mlafix.load %slots[%t] : !ints -> i32
    %i = arith.index_cast %s : i32 to index
    %fits = arith.cmpi slt, %i, %m : index
    mlafix.assume %fits, "slots[t] < m"
    mlafix.store %v, %to[%i] : f32, !vec
    %p = arith.cmpi sgt, %s, %k : i32
    mlafix.store %v, %out[%t] if %p : f32, !vec
  }
}
