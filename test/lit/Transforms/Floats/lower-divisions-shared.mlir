// A pack is divided by one number and narrowed to fp8. If the operands are within a range, the division uses the
// number's reciprocal and a correction. Otherwise, it is a real division.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 machine=sharedDivisions=4},mlafix.kernel(mlafix-distribute,mlafix-lower-divisions,canonicalize,cse))" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-distribute,mlafix-lower-divisions,canonicalize,cse))" | FileCheck %s --check-prefix=FEW
// RUN: %mlafix-opt %s --kernel=quantize --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: %mlafix-opt %s --kernel=quantize --target=x86-64-v3 --emit=llvm -o - | FileCheck %s --check-prefix=CPU

!e4m3 = memref<?x4xf8E4M3FN, strided<[?, 1], offset: ?>>
!e5m2 = memref<?x4xf8E5M2, strided<[?, 1], offset: ?>>
!i8s = memref<?x4xi8, strided<[?, 1], offset: ?>>
!rows = memref<?x4xf32, strided<[?, 1], offset: ?>>
!numbers = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<4xf32, #mlafix.dim<4>>

// CHECK-LABEL: mlafix.kernel @quantize_fast
// CHECK-DAG: %[[MINUS_ONE:.*]] = arith.constant -1.000000e+00 : f32
// CHECK-DAG: %[[LEAST:.*]] = arith.constant 5.42101086E-20 : f32
// CHECK-DAG: %[[LARGEST:.*]] = arith.constant 1.84467441E+19 : f32
// CHECK-DAG: %[[DIVIDEND:.*]] = arith.constant 4.61168602E+18 : f32
// CHECK-DAG: arith.cmpf oge, %[[S:.*]], %[[LEAST]]
// CHECK-DAG: arith.cmpf ole, %[[S]], %[[LARGEST]]
// CHECK-DAG: arith.cmpf ole, %{{.*}}, %[[DIVIDEND]]
// CHECK: %[[Q:.*]] = scf.if
// CHECK: %[[ABOUT:.*]] = nvvm.rcp.approx.ftz.f %[[S]] : f32
// CHECK: %[[OFF:.*]] = math.fma %[[S]], %[[ABOUT]], %[[MINUS_ONE]] : f32
// CHECK: %[[LESS:.*]] = arith.negf %[[OFF]]
// CHECK: %[[R:.*]] = math.fma %[[ABOUT]], %[[LESS]], %[[ABOUT]] : f32
// CHECK: %[[RS:.*]] = vector.broadcast %[[R]]
// CHECK: %[[D:.*]] = vector.broadcast %[[S]]
// CHECK: %[[NEAR:.*]] = arith.mulf %[[X:.*]], %[[RS]]
// CHECK: %[[MINUS:.*]] = arith.negf %[[X]]
// CHECK: %[[REST:.*]] = math.fma %[[NEAR]], %[[D]], %[[MINUS]]
// CHECK: %[[NEGATIVE:.*]] = arith.negf %[[RS]]
// CHECK: math.fma %[[REST]], %[[NEGATIVE]], %[[NEAR]]
// CHECK: } else {
// CHECK: arith.divf %[[X]], %{{.*}} : vector<4xf32>
// CHECK: arith.truncf %[[Q]] : vector<4xf32> to vector<4xf8E4M3FN>
// PTX-LABEL: .entry quantize_fast
// PTX: rcp.approx.ftz.f32
// PTX-COUNT-2: fma.rn.f32
// PTX-COUNT-4: mul.rn.f32
// PTX-COUNT-8: fma.rn.f32
// PTX-COUNT-4: div.rn.f32
// PTX: cvt.rn.satfinite.e4m3x2.f32
// CPU-LABEL: define {{.*}}@quantize
// CPU: fdiv <4 x float>
// CPU-NOT: fdiv float 1.0
mlafix.kernel @quantize(%out: !e4m3 {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                        %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                        %scales: !numbers {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %s = mlafix.load %scales[%t] : !numbers -> f32
    %row = mlafix.splat %s : f32 -> !tile
    %q = arith.divf %v, %row : !tile
    mlafix.store %q, %out[%t] : !tile, !e4m3
  }
}

// A clamp may follow the division, as in a store to f8E5M2.
// CHECK-LABEL: mlafix.kernel @bounded_fast
// CHECK: %[[Q:.*]] = scf.if
// CHECK: %[[LOWER:.*]] = arith.minimumf %[[Q]]
// CHECK: arith.maximumf %[[LOWER]]
mlafix.kernel @bounded(%out: !e5m2 {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                       %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                       %s: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %row = mlafix.splat %s : f32 -> !tile
    %q = arith.divf %v, %row : !tile
    mlafix.store %q, %out[%t] : !tile, !e5m2
  }
}

// Adjacent divisions share one branch, and one reciprocal per divisor.
// CHECK-LABEL: mlafix.kernel @pair_fast
// CHECK-COUNT-1: scf.if %{{.*}} -> (vector<4xf32>, vector<4xf32>)
// CHECK-COUNT-1: nvvm.rcp.approx.ftz.f
// CHECK-NOT: nvvm.rcp.approx.ftz.f
// CHECK: } else {
// CHECK-COUNT-2: arith.divf
// CHECK-NOT: scf.if %{{.*}} -> (vector
// CHECK-LABEL: mlafix.kernel @pair_any
mlafix.kernel @pair(%out: !e4m3 {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                    %other: !e4m3 {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                    %y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                    %s: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %w = mlafix.load %y[%t] : !rows -> !tile
    %row = mlafix.splat %s : f32 -> !tile
    %p = arith.divf %v, %row : !tile
    %q = arith.divf %w, %row : !tile
    mlafix.store %p, %out[%t] : !tile, !e4m3
    mlafix.store %q, %other[%t] : !tile, !e4m3
  }
}

// Rounding to an integer does not distinguish a small quotient from 0, and neither does a sum with a number of at least
// 1, so the check allows small dividends.
// CHECK-LABEL: mlafix.kernel @bytes_fast
// CHECK: %[[Q:.*]]:2 = scf.if %{{.*}} -> (vector<4xf32>, vector<4xf32>)
// CHECK: } else {
// CHECK-COUNT-2: arith.divf
// CHECK-DAG: arith.cmpf uno, %[[Q]]#0, %[[Q]]#0
// CHECK-DAG: arith.subf %[[Q]]#1
// CHECK-LABEL: mlafix.kernel @bytes_any
mlafix.kernel @bytes(%out: !i8s {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                     %z: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                     %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                     %y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                     %s: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant dense<1.0> : !tile
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %w = mlafix.load %y[%t] : !rows -> !tile
    %row = mlafix.splat %s : f32 -> !tile
    %p = arith.divf %v, %row : !tile
    %q = arith.divf %w, %row : !tile
    %less = arith.subf %q, %c1 : !tile
    mlafix.store %p, %out[%t] : !tile, !i8s
    mlafix.store %less, %z[%t] : !tile, !rows
  }
}

// In a sum with a number smaller than 1, a small quotient matters. The check then excludes dividends between 0 and
// 2^-100, and divisors above 2^20. For few elements, the check takes longer than the divisions, so they stay (FEW).
// CHECK-LABEL: mlafix.kernel @small_sum_fast
// FEW-LABEL: mlafix.kernel @small_sum_fast
// FEW-NOT: scf.if %{{.*}} -> (vector
// FEW: arith.divf
// CHECK-DAG: %[[LARGEST:.*]] = arith.constant 0x49800000 : f32
// CHECK-DAG: %[[LEAST:.*]] = arith.constant 226492415 : i32
// CHECK: arith.andi %{{.*}} : vector<4xi32>
// CHECK: arith.subi %{{.*}} : vector<4xi32>
// CHECK-COUNT-3: arith.minui
// CHECK: arith.cmpi uge, %{{.*}}, %[[LEAST]]
// CHECK: arith.cmpf ole, %{{.*}}, %[[LARGEST]]
// CHECK: scf.if %{{.*}} -> (vector
// CHECK: } else {
// CHECK: arith.divf
mlafix.kernel @small_sum(%z: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                         %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                         %s: f32) {
  %c0 = arith.constant 0 : index
  %half = arith.constant dense<0.5> : !tile
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %row = mlafix.splat %s : f32 -> !tile
    %q = arith.divf %v, %row : !tile
    %more = arith.addf %q, %half : !tile
    mlafix.store %more, %z[%t] : !tile, !rows
  }
}

// A small quotient also matters if the row is stored without narrowing. The dividends are exponentials, which are never
// negative, so the check uses their bits without clearing the sign.
// CHECK-LABEL: mlafix.kernel @powers_fast
// CHECK: math.exp
// CHECK-NOT: arith.andi %{{.*}} : vector<4xi32>
// CHECK-COUNT-3: arith.minui
// CHECK: scf.if %{{.*}} -> (vector
mlafix.kernel @powers(%z: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                      %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %e = math.exp %v : !tile
    %s = mlafix.reduce add %e : !tile
    %row = mlafix.splat %s : f32 -> !tile
    %q = arith.divf %e, %row : !tile
    mlafix.store %q, %z[%t] : !tile, !rows
  }
}

// A quotient that is stored both as fp8 and as f32 needs the check for small dividends. Both stores use the quotient of
// one branch.
// CHECK-LABEL: mlafix.kernel @wide_fast
// CHECK-COUNT-3: arith.minui
// CHECK: %[[Q:.*]] = scf.if %{{.*}} -> (vector<4xf32>)
mlafix.kernel @wide(%out: !e4m3 {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                    %y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                    %s: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %row = mlafix.splat %s : f32 -> !tile
    %q = arith.divf %v, %row : !tile
    mlafix.store %q, %out[%t] : !tile, !e4m3
    mlafix.store %q, %y[%t] : !tile, !rows
  }
}
