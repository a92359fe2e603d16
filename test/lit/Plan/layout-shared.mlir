// A lane has two packs if the speed is limited by work that a lane does once for all its elements. This is so in a
// kernel that converts a row and moves few bytes, and in one that divides a row by a number and stores 16-bit elements.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90})" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 machine=sharedPacks=1})" | FileCheck %s --check-prefix=ONE
// With accesses of 32 bytes, one pack is enough.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_100})" | FileCheck %s --check-prefix=WIDE
// RUN: %mlafix-opt %s --kernel=narrowed --target=sm_90 --mlafix-remarks --emit=layout -o /dev/null 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: %mlafix-opt %s --kernel=divided --target=sm_90 --mlafix-remarks --emit=layout -o /dev/null 2>&1 | FileCheck %s --check-prefix=CHECKED
// BYTES: narrowed_dense on sm_90: a row of 128 elements is 16 packs of 8 elements; 8 lanes hold up to 2 packs each: with one pack of rows of two widths, a lane moves few bytes
// CHECKED: divided_dense on sm_90: a row of 128 elements is 16 packs of 8 elements; 8 lanes hold up to 2 packs each: one check covers the divisions of all packs of a lane

!bf16s = memref<?x128xbf16, strided<[?, 1], offset: ?>>
!f8s = memref<?x128xf8E4M3FN, strided<[?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>

// CHECK: @narrowed_dense({{.*}}layout = <lanes = 8, packs = 2, pack = 8,
// WIDE: @narrowed_dense({{.*}}layout = <lanes = 8, packs = 1, pack = 16,
// ONE: @narrowed_dense({{.*}}layout = <lanes = 16, packs = 1, pack = 8,
mlafix.kernel @narrowed(%y: !f8s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !f8s
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf16s -> !tile
    mlafix.store %v, %y[%t] : !tile, !f8s
  }
}

// A lane that loads two rows moves enough bytes with one pack.
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

// The two packs of f32 that a lane would have need 8 divisions. These are too few for mlafix-lower-divisions to check
// their operands together, so a lane has one pack.
// RUN: sed 's/128xbf16/128xf32/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90})" | FileCheck %s --check-prefix=F32
// F32: @divided_dense({{.*}}layout = <lanes = 32, packs = 1, pack = 4,
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

// A division of a row by a row shares no work between elements, so a lane has one pack.
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

// The row has three packs. With two packs per lane, the second lane would have only one, so each lane has one pack.
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
