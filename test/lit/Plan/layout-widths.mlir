// The pack is chosen for the rows with most of the bytes. These rows are moved 16 bytes at a time, whatever the width
// of the others.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90})" | FileCheck %s
// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx --variant=dense --kernel=table | FileCheck %s --check-prefix=PTX

!bf16s = memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>>
!f32s = memref<?x16x128xf32, strided<[?, ?, 1], offset: ?>>
!tables = memref<?x128xf32, strided<[?, 1], offset: ?>>
!pages = memref<?x128xbf16, strided<[?, 1], offset: ?>>
!results = memref<?x128xf32, strided<[?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>

// A row of the f32 table is read for all heads and comes from the caches, so its bytes do not count. The guard requires
// that the table is aligned to an access (16 bytes), not to a pack (32 bytes).
// CHECK: mlafix.kernel @table_dense
// CHECK-SAME: #mlafix.guard<align, args = [0, 1], bytes = 16>
// CHECK-SAME: layout = <lanes = 8, packs = 2, pack = 8,
// PTX: .entry table_dense
// PTX-COUNT-6: ld.global.v4.b32
// PTX-NOT: ld.global.v2
// PTX-COUNT-2: st.global.v4.b32
mlafix.kernel @table(%x: !bf16s {mlafix.dims = ["n", "H", "D"], mlafix.access = "update"}, %table: !tables {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !bf16s
  %heads = memref.dim %x, %c1 : !bf16s
  mlafix.forall (%t, %h) in (%n, %heads) {
    %v = mlafix.load %x[%t, %h] : !bf16s -> !tile
    %w = mlafix.load %table[%t] : !tables -> !tile
    %p = arith.mulf %v, %w : !tile
    mlafix.store %p, %x[%t, %h] : !tile, !bf16s
  }
}

// The bytes of a loop's rows count once per iteration, those of the f32 result once.
// CHECK: mlafix.kernel @loop_dense
// CHECK-SAME: pack = 8,
mlafix.kernel @loop(%y: !results {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !pages {mlafix.dims = ["m", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %y, %c0 : !results
  %m = memref.dim %x, %c0 : !pages
  %zero = arith.constant 0.0 : f32
  mlafix.forall (%t) in (%n) {
    %none = mlafix.splat %zero : f32 -> !tile
    %sum = scf.for %i = %t to %m step %c1 iter_args(%acc = %none) -> (!tile) {
      %v = mlafix.load %x[%i] : !pages -> !tile
      %next = arith.addf %acc, %v : !tile
      scf.yield %next : !tile
    }
    mlafix.store %sum, %y[%t] : !tile, !results
  }
}

// A third of the bytes may be moved in narrower accesses; here, the bytes of bf16.
// CHECK: mlafix.kernel @converted_dense
// CHECK-SAME: pack = 4,
mlafix.kernel @converted(%y: !f32s {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"}, %x: !bf16s {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !bf16s
  %heads = memref.dim %x, %c1 : !bf16s
  mlafix.forall (%t, %h) in (%n, %heads) {
    %v = mlafix.load %x[%t, %h] : !bf16s -> !tile
    mlafix.store %v, %y[%t, %h] : !tile, !f32s
  }
}
