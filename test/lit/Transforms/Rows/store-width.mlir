// A store to a tensor whose dtype is a variable converts integers to the width of the bound type: it sign-extends them,
// or keeps their low bits.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=16,I=i8},mlafix-plan-kernel{target=sm_90 variant=any},mlafix.kernel(mlafix-distribute),canonicalize)" | FileCheck %s --check-prefixes=CHECK,I8
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=16,I=u8},mlafix-plan-kernel{target=x86-64 variant=any},mlafix.kernel(mlafix-distribute),canonicalize)" | FileCheck %s --check-prefixes=CHECK,U8
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=16,I=i32},mlafix-plan-kernel{target=sm_90 variant=any},mlafix.kernel(mlafix-distribute),canonicalize)" | FileCheck %s --check-prefixes=CHECK,I32
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=16,I=i64},mlafix-plan-kernel{target=x86-64 variant=any},mlafix.kernel(mlafix-distribute),canonicalize)" | FileCheck %s --check-prefixes=CHECK,I64
// RUN: %mlafix-opt %s --specialize=D=16,I=u8 --target=sm_80 --emit=ptx -o /dev/null

!rows = memref<?x?xi32, strided<[?, 1], offset: ?>>
!ones = memref<?xi32, strided<[?], offset: ?>>
!wide = memref<?xi64, strided<[?], offset: ?>>
!tile = tensor<?xi32, #mlafix.dim<"D">>

// CHECK-LABEL: mlafix.kernel @narrow_any(
mlafix.kernel @narrow(
    %y: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "I", mlafix.access = "write"},
    %z: !ones {mlafix.dims = ["n"], mlafix.dtype = "I", mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %w: !wide {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %w, %c0 : !wide
  mlafix.forall (%t) in (%n) {
    // I8-DAG: arith.trunci {{.*}} : vector<{{[0-9]+}}xi32> to vector<{{[0-9]+}}xi8>
    // I8-DAG: arith.trunci {{.*}} : i64 to i8
    // U8-DAG: arith.trunci {{.*}} : vector<{{[0-9]+}}xi32> to vector<{{[0-9]+}}xi8>
    // U8-DAG: memref.store {{.*}} : memref<?xui8,
    // I32-DAG: arith.trunci {{.*}} : i64 to i32
    // I32-DAG: vector.store {{.*}} vector<{{[0-9]+}}xi32>
    // I64-DAG: arith.extsi {{.*}} : vector<{{[0-9]+}}xi32> to vector<{{[0-9]+}}xi64>
    // I64-DAG: memref.store {{.*}} : memref<?xi64,
    %v = mlafix.load %x[%t] : !rows -> !tile
    %s = mlafix.load %w[%t] : !wide -> i64
    mlafix.store %v, %y[%t] : !tile, !rows
    mlafix.store %s, %z[%t] : i64, !ones
  }
}
