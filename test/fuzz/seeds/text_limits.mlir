// Contains everything that TextCheck.h limits before the text is parsed: aliases of aliases, comparisons, operators,
// long numbers, strings with brackets.
#a0 = [1, -2, "](\"{"]
#a1 = {x = #a0, y = #a0} // [[[
#a2 = [#a1, #a1, #a1]
#s0 = affine_set<(d0)[s0] : (d0 - 1 >= 0, -d0 + s0 * 2 - 1 >= 0, d0 mod 2 == 0)>
#m0 = affine_map<(d0, d1) -> (d0 + d1 * 2 - (d0 floordiv 3), -(-d1))>
!row = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>
!pair = tuple<!row, tuple<i32, (i32) -> i64>>

mlafix.kernel @scaled(%y: !row {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "update"},
                      %x: !row {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "read"}) attributes {seed.a = #a2, seed.b = [#s0, #m0, !pair, 340282346638528859811704183484516925440 : i256, 0xFF : i64, 1.5e-30]} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !row
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !row -> !tile
    mlafix.store %v, %y[%t] : !tile, !row
  }
}
