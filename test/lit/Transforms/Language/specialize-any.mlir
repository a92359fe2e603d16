// "any" leaves an upper-case dim to the launch: the dim is not bound, and its size stays dynamic.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=H=any,D=96})" | FileCheck %s
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=H=16,D=any})" 2>&1 | FileCheck %s --check-prefix=LENGTH

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>

// LENGTH: error: expected a positive integer for dim 'D', since rows have this length, got 'any'

// CHECK-LABEL: mlafix.kernel @copy(
// CHECK-SAME: %out: memref<?x?x96xbf16, strided<[?, ?, 1], offset: ?>>
// CHECK-SAME: mlafix.dims = ["n", "H", "D"]
// CHECK-SAME: attributes {bindings = {D = 96 : i64}}
mlafix.kernel @copy(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : !rows -> tensor<?xf32, #mlafix.dim<"D">>
    mlafix.store %v, %out[%t, %h] : tensor<?xf32, #mlafix.dim<"D">>, !rows
  }
}
