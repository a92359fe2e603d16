// If two elements of some row share a byte, packs have at least two elements, even if an access to another row moves
// only one element.
// RUN: %mlafix-opt %s --specialize=G=5 --target=sm_90 --emit=ptx -o - --variant=dense | FileCheck %s --check-prefix=PTX
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=G=5},mlafix-plan-kernel{target=sm_90})" | FileCheck %s

!halves = memref<?x4xf4E2M1FN, strided<[?, 1], offset: ?>>
!bytes = memref<?x4xf8E8M0FNU, strided<[?, 1], offset: ?>>
!groups = memref<?x?xf32, strided<[?, 1], offset: ?>>
!w = tensor<4xf32, #mlafix.dim<4>>
!g = tensor<?xf32, #mlafix.dim<"G">>

// CHECK-LABEL: mlafix.kernel @k_dense(
// CHECK-SAME: pack = 2,
// CHECK-LABEL: mlafix.kernel @k_fast(
// CHECK-SAME: pack = 2,
// CHECK-LABEL: mlafix.kernel @k_any(
// CHECK-SAME: pack = 2,
// PTX: ld.global.b8
mlafix.kernel @k(
    %y: !bytes {mlafix.dims = ["n", "w"], mlafix.access = "write"},
    %z: !groups {mlafix.dims = ["n", "G"], mlafix.access = "write"},
    %x: !halves {mlafix.dims = ["n", "w"], mlafix.access = "read"},
    %v: !groups {mlafix.dims = ["n", "(G 4)"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %x, %c0 : !halves
  mlafix.forall (%t) in (%n) {
    %row = mlafix.load %x[%t] : !halves -> !w
    mlafix.store %row, %y[%t] : !w, !bytes
    %member = mlafix.load %v[%t] member %c3 : !groups -> !g
    mlafix.store %member, %z[%t] : !g, !groups
  }
}
