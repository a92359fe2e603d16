// Rows along a dim with a bound. The code version for sizes that are multiples of a pack moves whole packs. The other
// versions move single elements.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90})" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3})" | FileCheck %s --check-prefix=CPU
// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx | FileCheck %s --check-prefix=PTX

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!col = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<1000xf32, #mlafix.dim<"v" most 1000>>

// CHECK-LABEL: mlafix.kernel @sum_whole_dense
// CHECK-SAME: guards = [#mlafix.guard<align, args = [0, 1], bytes = 16>
// CHECK-SAME: #mlafix.guard<multiple, arg = 0, dim = 1, value = 8>
// CHECK-SAME: layout = <lanes = 32, packs = 4, pack = 8, rows = 8>
// CHECK: arith.constant dense<2.000000e+00> : tensor<1000xf32, #mlafix.dim<"v" most 1000 by 8>>
// CHECK: mlafix.load %{{.*}} -> tensor<1000xf32, #mlafix.dim<"v" most 1000 by 8>>
// CHECK: mlafix.kernel @sum_fast
// CHECK-SAME: guards = [#mlafix.guard<max_rows, value = {{[0-9]+}}>]
// CHECK: mlafix.kernel @sum_any
// CHECK-SAME: guards = []

// CPU: mlafix.kernel @sum_whole_any
// CPU-SAME: guards = [#mlafix.guard<multiple, arg = 0, dim = 1, value = 16>]
// CPU: mlafix.kernel @sum_any
// CPU-SAME: guards = []

// PTX-LABEL: .entry sum_whole_dense(
// PTX: ld.global.v4.b32
// PTX: st.global.v4.b32
// PTX-LABEL: .entry sum_fast(
// PTX-NOT: ld.global.v4
mlafix.kernel @sum(%y: !rows {mlafix.dims = ["n", "v"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "v"], mlafix.access = "read"},
                   %s: !col {mlafix.dims = ["n"], mlafix.access = "write"}) attributes {most = {v = 1000}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %two = arith.constant dense<2.0> : !tile
    %v = mlafix.load %x[%t] : !rows -> !tile
    %w = arith.mulf %v, %two : !tile
    %sum = mlafix.reduce add %w : !tile
    mlafix.store %w, %y[%t] : !tile, !rows
    mlafix.store %sum, %s[%t] : f32, !col
  }
}
