// If a body only moves the elements of a float variable, they become integers, so that their bits stay the same:
// conversions of fp8 would saturate, and make every NaN the same. Elements that the body computes with stay floats, and
// so do those of f32.
// RUN: %mlafix-opt %s --specialize=T=f8e4m3fn --emit=specialized -o - | FileCheck %s
// RUN: %mlafix-opt %s --specialize=T=f32 --emit=specialized -o - | FileCheck %s --check-prefix=SAME
// RUN: %mlafix-opt %s --specialize=T=i64 --target=x86-64-v3 --emit=llvm -o /dev/null
// RUN: %mlafix-opt %s --specialize=T=f8e5m2 --target=x86-64-v3 --emit=distributed -o - | FileCheck %s --check-prefix=CPU
// RUN: %mlafix-opt %s --emit=signature -o - | FileCheck %s --check-prefix=SIGNATURE

// SIGNATURE: "dtype_moved":true

!rows = memref<?x16xbf16, strided<[?, 1], offset: ?>>
!tile = tensor<16xf32, #mlafix.dim<16>>
// CHECK-LABEL: mlafix.kernel @moves
// CHECK-SAME: %filled: memref<?x16xf8E4M3FN, {{.*}}mlafix.fill = 0 : i64
// CHECK: %[[ZERO:.+]] = arith.constant 0 : i64
// CHECK: mlafix.load %x[%{{.+}}] if %p else %[[ZERO]] : {{.+}} -> tensor<16xi64,
// CHECK: mlafix.splat %[[ZERO]] : i64
// CHECK: scf.if %p -> (tensor<16xi64,
// CHECK: arith.select %p, %{{.+}} : tensor<16xi64,
// CHECK: mlafix.store %cst, %y
// CHECK-COUNT-2: mlafix.store {{.+}} : tensor<16xi64,
// SAME-LABEL: mlafix.kernel @moves
// SAME-NOT: i64
// CPU-LABEL: mlafix.kernel @moves
// CPU-NOT: arith.extf
mlafix.kernel @moves(%out: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "write"},
                     %filled: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "write", mlafix.fill = 0.0 : f32},
                     %y: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"},
                     %x: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "read"}, %p: i1) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  %zero = arith.constant 0.0 : f32
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] if %p else %zero : !rows -> !tile
    %w = mlafix.splat %zero : f32 -> !tile
    %b = scf.if %p -> !tile {
      scf.yield %v : !tile
    } else {
      scf.yield %w : !tile
    }
    %s = arith.select %p, %b, %v : !tile
    // The zero is also stored as f32, so the f32 constant stays beside the integer.
    mlafix.store %zero, %y[%t] : f32, memref<?xf32, strided<[?], offset: ?>>
    mlafix.store %s, %out[%t] : !tile, !rows
    mlafix.store %v, %filled[%t] if %p : !tile, !rows
  }
}
