// If elements of an integer variable are only moved, the variable can be bound to every dtype. The kernel moves their
// bits.
// RUN: %mlafix-opt %s --specialize=I=bf16 --target=x86-64-v3 --emit=distributed -o - | FileCheck %s
// RUN: %mlafix-opt %s --specialize=I=f8e5m2 --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=PTX

!rows = memref<?x16xi32, strided<[?, 1], offset: ?>>
!tile = tensor<16xi64, #mlafix.dim<16>>
// CHECK-LABEL: mlafix.kernel @move
// CHECK: %[[V:.*]] = vector.load %x{{.*}} : memref<?x16xbf16{{.*}}>, vector<16xbf16>
// CHECK-NEXT: vector.store %[[V]], %out
// PTX: ld.global.v4.b32
// PTX-NOT: cvt
// PTX: st.global.v4.b32
mlafix.kernel @move(%out: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "I", mlafix.access = "write"},
                    %x: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "I", mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    mlafix.store %v, %out[%t] : !tile, !rows
  }
}
