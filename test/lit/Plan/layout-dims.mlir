// Rows along different dims have different packs. A row of 33 elements does not narrow the accesses to a row of 2048.
// RUN: %mlafix-opt %s --specialize=D=33,E=2048 --target=sm_90 --emit=ptx --variant=dense -o - | FileCheck %s --check-prefix=PTX
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=33,E=2048},mlafix-plan-kernel{target=sm_90})" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=33,E=2048},mlafix-plan-kernel{target=x86-64-v3},mlafix.kernel(mlafix-distribute),canonicalize)" | FileCheck %s --check-prefix=CPU

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!d = tensor<?xf32, #mlafix.dim<"D">>
!e = tensor<?xf32, #mlafix.dim<"E">>

// CHECK-LABEL: mlafix.kernel @k_dense(
// CHECK-SAME: guards = [#mlafix.guard<align, args = [1, 3], bytes = 16>, #mlafix.guard<max_rows
// CHECK-SAME: layout = <lanes = 64, packs = 4, pack = 8, rows = 1>
// CHECK-LABEL: mlafix.kernel @k_any(
// CHECK-SAME: layout = <lanes = 1024, packs = 2, pack = 1, rows = 1>
// PTX-DAG: ld.global.b16
// PTX-DAG: ld.global.v4.b32
// PTX-DAG: st.global.b16
// PTX-DAG: st.global.v4.b32
// On a CPU, each of the two rows has its own loop.
// CPU-LABEL: mlafix.kernel @k_any(
// CPU: vector.load {{.*}} : memref<?x33xbf16, {{.*}}, vector<1xbf16>
// CPU: vector.load {{.*}} : memref<?x2048xbf16, {{.*}}, vector<16xbf16>
// CPU-NOT: vector.load {{.*}} : memref<?x
mlafix.kernel @k(
    %y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %z: !rows {mlafix.dims = ["n", "E"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %w: !rows {mlafix.dims = ["n", "E"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !d
    %u = mlafix.load %w[%t] : !rows -> !e
    %sum = mlafix.reduce add %v : !d
    %scale = mlafix.splat %sum : f32 -> !e
    %scaled = arith.mulf %u, %scale : !e
    mlafix.store %v, %y[%t] : !d, !rows
    mlafix.store %scaled, %z[%t] : !e, !rows
  }
}
