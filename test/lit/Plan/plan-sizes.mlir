// Layouts of rows of several lengths and dtypes. Packs have up to 16 bytes and divide D. The last variant has no guards.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=96},mlafix-plan-kernel{target=sm_90})" | FileCheck %s --check-prefixes=CHECK,D96
// RUN: sed 's/xbf16/xf16/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=192},mlafix-plan-kernel{target=sm_90})" | FileCheck %s --check-prefixes=CHECK,F16
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=512},mlafix-plan-kernel{target=sm_90})" | FileCheck %s --check-prefixes=CHECK,D512
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=576},mlafix-plan-kernel{target=sm_90})" | FileCheck %s --check-prefixes=CHECK,D576
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=7168},mlafix-plan-kernel{target=sm_90})" | FileCheck %s --check-prefixes=CHECK,D7168
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=3},mlafix-plan-kernel{target=sm_90})" | FileCheck %s --check-prefixes=CHECK,D3
// RUN: sed 's/xbf16/xf32/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=1},mlafix-plan-kernel{target=sm_90})" | FileCheck %s --check-prefixes=CHECK,D1
// RUN: sed 's/xbf16/xf32/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=128},mlafix-plan-kernel{target=sm_90})" | FileCheck %s --check-prefixes=CHECK,F32
// RUN: sed '/^!out/s/xbf16/xf32/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=128},mlafix-plan-kernel{target=sm_90})" | FileCheck %s --check-prefixes=CHECK,WIDE

// If the lanes of a row never wait for each other, their number need not be a power of two. A row of 12 packs then has
// 12 lanes, and no lane is idle.
// D96: @copy_dense
// D96-SAME: layout = <lanes = 12, packs = 1, pack = 8, rows = 24>
// D96: @copy_fast
// D96-SAME: #mlafix.guard<max_rows, value = 536870911>
// D96-SAME: layout = <lanes = 4, packs = 3, pack = 8, rows = 64>
// F16: @copy_fast
// F16-SAME: #mlafix.guard<max_rows, value = 268435455>
// F16-SAME: layout = <lanes = 8, packs = 3, pack = 8, rows = 32>
// D512: @copy_fast
// D512-SAME: #mlafix.guard<max_rows, value = 67108863>
// D512-SAME: layout = <lanes = 32, packs = 2, pack = 8, rows = 8>
// D576: @copy_fast
// D576-SAME: #mlafix.guard<max_rows, value = 67108863>
// D576-SAME: layout = <lanes = 32, packs = 3, pack = 8, rows = 8>
// D7168: @copy_fast
// D7168-SAME: #mlafix.guard<max_rows, value = 4194303>
// D7168-SAME: layout = <lanes = 512, packs = 2, pack = 8, rows = 1>
// D3: @copy_fast
// D3-SAME: #mlafix.guard<max_rows, value = 536870911>
// D3-SAME: layout = <lanes = 4, packs = 1, pack = 1, rows = 64>
// D1: @copy_fast
// D1-SAME: #mlafix.guard<max_rows, value = 2147483647>
// D1-SAME: layout = <lanes = 1, packs = 1, pack = 1, rows = 256>
// F32: @copy_fast
// F32-SAME: #mlafix.guard<max_rows, value = 67108863>
// F32-SAME: layout = <lanes = 32, packs = 1, pack = 4, rows = 8>
// WIDE: @copy_fast
// WIDE-SAME: #mlafix.guard<max_rows, value = 134217727>
// WIDE-SAME: layout = <lanes = 16, packs = 2, pack = 4, rows = 16>
// CHECK: @copy_any
// CHECK-SAME: guards = [], plan = #mlafix.plan<layout = <lanes = {{[0-9]+}}, packs = {{[0-9]+}}, pack = 1,

!out = memref<?x16x?xbf16, strided<[?, ?, 1], offset: ?>>
!in = memref<?x16x?xbf16, strided<[?, ?, 1], offset: ?>>
mlafix.kernel @copy(%out: !out {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"}, %x: !in {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !out
  %H = memref.dim %out, %c1 : !out
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : !in -> tensor<?xf32, #mlafix.dim<"D">>
    mlafix.store %v, %out[%t, %h] : tensor<?xf32, #mlafix.dim<"D">>, !out
  }
}
