// A launch can break the promises of this kernel: k may be odd, slots negative or equal. Each row prints values.
!vec = memref<?xf32, strided<[?], offset: ?>>
!rows = memref<?x2xf32, strided<[?, 1], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>
mlafix.kernel @watched(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"},
    %to: !vec {mlafix.dims = ["m"], mlafix.access = "update"}, %lse: !vec {mlafix.dims = ["n"], mlafix.access = "read"},
    %slots: !ints {mlafix.dims = ["n"], mlafix.access = "read"}, %k: i32) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %two = arith.constant 2 : i32
  %neither = arith.constant -1.0 : f32
  %n = memref.dim %out, %c0 : !rows
  %rest = arith.remsi %k, %two : i32
  %even = arith.cmpi eq, %rest, %zero : i32
  %never = arith.cmpi eq, %k, %two : i32
  %either = arith.ori %even, %never : i1
  mlafix.assume %either, "k % 2 == 0"
  mlafix.distinct %slots : !ints
  mlafix.forall (%t) in (%n) {
    %s = mlafix.load %slots[%t] : !ints -> i32
    %low = arith.cmpi sge, %s, %zero : i32
    mlafix.assume %low, "slots[t] >= 0"
    %i = arith.index_cast %s : i32 to index
    %v = mlafix.load %lse[%t] : !vec -> f32
    mlafix.store %v, %to[%i] : f32, !vec
    %a = mlafix.load_state %out[%t] lse %lse[%t] : !rows, !vec -> !mlafix.state<2, e>
    %row = mlafix.load %out[%t] : !rows -> tensor<2xf32, #mlafix.dim<2>>
    %b = mlafix.make_state %row lse %v : tensor<2xf32, #mlafix.dim<2>> -> !mlafix.state<2, e>
    %merged = mlafix.merge %a, %b : !mlafix.state<2, e>
    %sum = mlafix.reduce add %row : tensor<2xf32, #mlafix.dim<2>>
    mlafix.print "slot {}, flag {}, lse {}, sum {}, row {}", %s, %low, %merged, %sum, %row : i32, i1, !mlafix.state<2, e>, f32, tensor<2xf32, #mlafix.dim<2>>
    mlafix.store_state %merged to %out[%t] : !mlafix.state<2, e>, !rows
  }
}
