// The code of a kernel stays small for all sizes of its dims, because rows along each dim have packs of their own, and
// because a loop processes a row of many packs.
// RUN: %python %S/code_size.py --tool %mlafix-opt --max-ptx=16000 --max-object=120000 %s D=33,E=2048 D=32,E=2048 D=1,E=4096 D=7168,E=7168 D=65536,E=33 D=65535,E=65536 D=65521,E=5

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!d = tensor<?xf32, #mlafix.dim<"D">>
!e = tensor<?xf32, #mlafix.dim<"E">>

mlafix.kernel @two_dims(
    %y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %z: !rows {mlafix.dims = ["n", "E"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %w: !rows {mlafix.dims = ["n", "E"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !d
    %u = mlafix.load %w[%t] : !rows -> !e
    %max = mlafix.reduce max %v : !d
    %peak = mlafix.splat %max : f32 -> !d
    %below = arith.subf %v, %peak : !d
    %exp = math.exp2 %below : !d
    %sum = mlafix.reduce add %exp : !d
    %scale = mlafix.splat %sum : f32 -> !e
    %scaled = arith.mulf %u, %scale : !e
    %power = math.exp2 %scaled : !e
    %total = mlafix.reduce add %power : !e
    %factor = mlafix.splat %total : f32 -> !d
    %result = arith.mulf %exp, %factor : !d
    mlafix.store %result, %y[%t] : !d, !rows
    mlafix.store %power, %z[%t] : !e, !rows
  }
}
