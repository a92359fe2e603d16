// Lanes hold two packs where what is the same for all of a lane's elements bounds the rate: one row that is stored in another width, or rows that
// are divided by a number into elements of 16 bits.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90})" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 machine=sharedPacks=1})" | FileCheck %s --check-prefix=ONE

!bf16s = memref<?x128xbf16, strided<[?, 1], offset: ?>>
!f8s = memref<?x128xf8E4M3FN, strided<[?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>

// CHECK: @narrowed_dense({{.*}}layout = <lanes = 8, packs = 2, pack = 8,
// ONE: @narrowed_dense({{.*}}layout = <lanes = 16, packs = 1, pack = 8,
mlafix.kernel @narrowed(%y: !f8s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !f8s
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf16s -> !tile
    mlafix.store %v, %y[%t] : !tile, !f8s
  }
}

// A lane of two rows moves enough with one pack.
// CHECK: @sum_narrowed_dense({{.*}}layout = <lanes = 16, packs = 1, pack = 8,
mlafix.kernel @sum_narrowed(%y: !f8s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                            %z: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !f8s
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf16s -> !tile
    %w = mlafix.load %z[%t] : !bf16s -> !tile
    %sum = arith.addf %v, %w : !tile
    mlafix.store %sum, %y[%t] : !tile, !f8s
  }
}

// CHECK: @divided_dense({{.*}}layout = <lanes = 8, packs = 2, pack = 8,
mlafix.kernel @divided(%y: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                       %cap: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !bf16s
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf16s -> !tile
    %caps = mlafix.splat %cap : f32 -> !tile
    %q = arith.divf %v, %caps : !tile
    mlafix.store %q, %y[%t] : !tile, !bf16s
  }
}

// Nothing is shared by a division of rows by each other.
// CHECK: @by_a_row_dense({{.*}}layout = <lanes = 16, packs = 1, pack = 8,
mlafix.kernel @by_a_row(%y: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                        %z: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !bf16s
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf16s -> !tile
    %w = mlafix.load %z[%t] : !bf16s -> !tile
    %q = arith.divf %v, %w : !tile
    mlafix.store %q, %y[%t] : !tile, !bf16s
  }
}

// Of three packs one lane would hold a half.
// CHECK: @odd_dense({{.*}}layout = <lanes = 3, packs = 1, pack = 8,
mlafix.kernel @odd(%y: memref<?x24xf8E4M3FN, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "E"], mlafix.access = "write"},
                   %x: memref<?x24xbf16, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "E"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?x24xf8E4M3FN, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : memref<?x24xbf16, strided<[?, 1], offset: ?>> -> tensor<24xf32, #mlafix.dim<24>>
    mlafix.store %v, %y[%t] : tensor<24xf32, #mlafix.dim<24>>, memref<?x24xf8E4M3FN, strided<[?, 1], offset: ?>>
  }
}
