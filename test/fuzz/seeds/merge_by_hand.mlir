// A merge that is written without states, as arithmetic on lses in a loop. The
// analysis of NaN examines such arithmetic.
!mat = memref<?x?xf32, strided<[?, 1], offset: ?>>
!mats = memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>

mlafix.kernel @online(%out: !mat {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %parts: !mats {mlafix.dims = ["k", "n", "D"], mlafix.access = "read"},
    %part_lses: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["k", "n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !mat
  %k = memref.dim %parts, %c0 : !mats
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %none = arith.constant 0xFF800000 : f32
    %nothing = mlafix.splat %zero : f32 -> !tile
    %m, %s, %acc = scf.for %i = %c0 to %k step %c1 iter_args(%mi = %none, %si = %zero, %ai = %nothing) -> (f32, f32, !tile) {
      %l = mlafix.load %part_lses[%i, %t] : memref<?x?xf32, strided<[?, ?], offset: ?>> -> f32
      %row = mlafix.load %parts[%i, %t] : !mats -> !tile
      %mn = arith.maximumf %mi, %l : f32
      %d = arith.subf %mi, %mn : f32
      %alpha = math.exp %d : f32
      %e = arith.subf %l, %mn : f32
      %p = math.exp %e : f32
      %s1 = arith.mulf %si, %alpha : f32
      %sn = arith.addf %s1, %p : f32
      %alphas = mlafix.splat %alpha : f32 -> !tile
      %ps = mlafix.splat %p : f32 -> !tile
      %a1 = arith.mulf %ai, %alphas : !tile
      %a2 = arith.mulf %row, %ps : !tile
      %an = arith.addf %a1, %a2 : !tile
      scf.yield %mn, %sn, %an : f32, f32, !tile
    }
    %ss = mlafix.splat %s : f32 -> !tile
    %r = arith.divf %acc, %ss : !tile
    mlafix.store %r, %out[%t] : !tile, !mat
  }
}
