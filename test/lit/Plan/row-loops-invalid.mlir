// A user cannot have rows processed in loops over packs if scf.while carries them, if groups of lanes share the loops that
// merge them, or if a lane has one pack.
// RUN: not %mlafix-opt %s --split-input-file --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 plan=row_loops=yes})" 2>&1 | FileCheck %s
// The compiler does not choose it for them either, however long they are.
// RUN: %mlafix-opt %s --split-input-file --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 machine=unrolledInstructions=1,heldElements=1 variant=dense})" | FileCheck %s --check-prefix=CHOSEN
// CHECK-COUNT-3: error: expected 'row_loops' to be no unless a lane has several packs of a row, no scf.while carries rows, and no groups of lanes share merge loops, got yes
// CHOSEN: mlafix.kernel @carried_dense
// CHOSEN-SAME: packs = 2
// CHOSEN-NOT: row_loops
// CHOSEN: mlafix.kernel @grouped_dense
// CHOSEN-SAME: groups =
// CHOSEN-NOT: row_loops
// CHOSEN: mlafix.kernel @one_dense
// CHOSEN-SAME: packs = 1
// CHOSEN-NOT: row_loops
!rows = memref<?x256xf32, strided<[?, 1], offset: ?>>
!tile = tensor<256xf32, #mlafix.dim<256>>
mlafix.kernel @carried(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %p: i1) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %w = scf.while (%now = %v) : (!tile) -> !tile {
      scf.condition(%p) %now : !tile
    } do {
    ^bb0(%now: !tile):
      %next = arith.addf %now, %now : !tile
      scf.yield %next : !tile
    }
    %sum = mlafix.reduce add %w : !tile
    %sums = mlafix.splat %sum : f32 -> !tile
    mlafix.store %sums, %x[%t] : !tile, !rows
  }
}

// -----

!rows = memref<?x?x256xf32, strided<[?, ?, 1], offset: ?>>
!out = memref<?x256xf32, strided<[?, 1], offset: ?>>
!tile = tensor<256xf32, #mlafix.dim<256>>
mlafix.kernel @grouped(%out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %n = memref.dim %out, %c0 : !out
  %k = memref.dim %x, %c1 : !rows
  mlafix.forall (%t) in (%n) {
    %none = mlafix.splat %zero : f32 -> !tile
    %all:3 = mlafix.merge_loop %i = %c0 to %k step 4 init(%zero, %one, %none) : f32, f32, !tile attributes {base = #mlafix.base<e>} {
      %row = mlafix.load %x[%t, %i] : !rows -> !tile
      mlafix.yield %zero, %one, %row : f32, f32, !tile
    }
    mlafix.store %all#2, %out[%t] : !tile, !out
  }
}

// -----

!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
mlafix.kernel @one(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    mlafix.store %v, %out[%t] : !tile, !rows
  }
}
