// REQUIRES: ptxas
// If the rows of a ragged grid load memory, each multiprocessor gets as many blocks as fit with the registers that the
// assembler reports. Without an assembler, the machine model gives the number of blocks.
// RUN: %mlafix-opt %s --target=sm_90 --emit=distributed | FileCheck %s
// RUN: %mlafix-opt %s --target=sm_90 -o %t
// RUN: %python -c "import re; found = re.findall(rb'.blocks_per_sm.:(\d+).*?.registers.:(\d+)', open(r'%t', 'rb').read()); assert found and all(int(b) == 65536 // (256 * (-(-int(r) // 8) * 8)) for b, r in found), found"

// CHECK: blocks_per_sm = 4
!rows = memref<?x8x128xbf16, strided<[?, ?, 1], offset: ?>>
!ids = memref<?xi32, strided<[?], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
mlafix.kernel @scale(%y: !rows {mlafix.dims = ["n", "8", "128"], mlafix.access = "update"}, %x: !rows {mlafix.dims = ["n", "8", "128"], mlafix.access = "read"},
                     %starts: !ids {mlafix.dims = ["b1"], mlafix.access = "read"}, %by: f32) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.ragged_forall (%b, %t, %h) in (%starts, %n, %c8) : !ids where {
    %true = arith.constant true
    mlafix.yield %true : i1
  } do {
    %v = mlafix.load %x[%t, %h] : !rows -> !tile
    %all = mlafix.splat %by : f32 -> !tile
    %w = arith.mulf %v, %all : !tile
    mlafix.store %w, %y[%t, %h] : !tile, !rows
  }
}
