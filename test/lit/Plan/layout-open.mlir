// The size of dim H is only known at the launch. A guard ensures that the H rows of one index follow those of the
// preceding index without a gap. One number then identifies a row, as for an H that is known, and no division is
// needed.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=H=any,D=128},mlafix-plan-kernel{target=sm_90})" | FileCheck %s
// RUN: %mlafix-opt %s --specialize=H=any,D=128 --target=sm_90 --variant=dense --emit=ptx | FileCheck %s --check-prefix=PTX

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!parts = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1], offset: ?>>

// CHECK-LABEL: mlafix.kernel @copy_dense(
// CHECK-SAME: %out: memref<?x?x128xbf16, strided<[?, 128, 1], offset: ?>>
// CHECK-SAME: #mlafix.guard<packed, arg = 0, dim = 0, value = 128>
// Along a dim in lower case (k), a tensor may be a slice of a larger one, so the stride of k has no guard.
// CHECK-NOT: arg = 1, dim = 0
// CHECK-SAME: #mlafix.guard<packed, arg = 1, dim = 1, value = 128>
// CHECK-LABEL: mlafix.kernel @copy_fast(
// CHECK-NOT: packed

// PTX: .entry copy_dense
// PTX-NOT: div.
// PTX-NOT: rem.
// PTX: ld.global.v4.b32
mlafix.kernel @copy(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: !parts {mlafix.dims = ["k", "n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%c0, %t, %h] : !parts -> tensor<?xf32, #mlafix.dim<"D">>
    mlafix.store %v, %out[%t, %h] : tensor<?xf32, #mlafix.dim<"D">>, !rows
  }
}
