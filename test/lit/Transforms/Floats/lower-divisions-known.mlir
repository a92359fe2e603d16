// A division by a power of two from f8E8M0FNU becomes a product with its inverse. A division by a constant with few
// bits becomes a product with the constant's inverse in two parts. A division by a number within known bounds uses its
// reciprocal. Other divisions stay.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 variant=any},mlafix.kernel(mlafix-distribute,canonicalize,cse,mlafix-lower-divisions,canonicalize,cse))" | FileCheck %s
// RUN: %mlafix-opt %s --kernel=scales --target=sm_90 --variant=any --emit=ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: %mlafix-opt %s --kernel=powers --target=sm_90 --variant=any --emit=ptx -o - | FileCheck %s --check-prefix=POWERS
// RUN: %mlafix-opt %s --kernel=scales --target=x86-64-v3 --variant=any --emit=llvm -o - | FileCheck %s --check-prefix=CPU

!numbers = memref<?xf32, strided<[?], offset: ?>>
!codes = memref<?xf8E8M0FNU, strided<[?], offset: ?>>
!rows = memref<?x4xf32, strided<[?, 1], offset: ?>>
!tile = tensor<4xf32, #mlafix.dim<4>>

// 448 is 7 * 64. The first part of its inverse (HIGH) is rounded down, and the second part (LOW) is the rest. The
// product with the second part is computed first.
// CHECK-LABEL: mlafix.kernel @scales_any
// CHECK-DAG: %[[HIGH:.*]] = arith.constant 0.00223214272 : f32
// CHECK-DAG: %[[LOW:.*]] = arith.constant 1.33046088E-10 : f32
// CHECK-DAG: %[[LEAST:.*]] = arith.constant 1.000000e-10 : f32
// CHECK: %[[MOST:.*]] = arith.maximumf %{{.*}}, %[[LEAST]]
// CHECK: %[[LESS:.*]] = arith.mulf %[[MOST]], %[[LOW]]
// CHECK: math.fma %[[MOST]], %[[HIGH]], %[[LESS]]
// PTX-LABEL: .entry scales_any
// PTX: max.NaN.f32
// PTX-NEXT: mul.rn.f32
// PTX-NEXT: fma.rn.f32
// PTX-NOT: div
// CPU-LABEL: define {{.*}}@scales
// CPU: fdiv
mlafix.kernel @scales(%y: !numbers {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !numbers {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %least = arith.constant 1.0e-10 : f32
  %c448 = arith.constant 448.0 : f32
  %n = memref.dim %y, %c0 : !numbers
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !numbers -> f32
    %most = arith.maximumf %v, %least : f32
    %scale = arith.divf %most, %c448 : f32
    mlafix.store %scale, %y[%t] : f32, !numbers
  }
}

// CHECK-LABEL: mlafix.kernel @powers_any
// CHECK-NOT: arith.divf
// CHECK: %[[SUM:.*]] = arith.constant -2 : i8
// CHECK: %[[CODE:.*]] = builtin.unrealized_conversion_cast %{{.*}} : f8E8M0FNU to i8
// CHECK: %[[OTHER:.*]] = arith.subi %[[SUM]], %[[CODE]]
// CHECK: %[[POWER:.*]] = builtin.unrealized_conversion_cast %[[OTHER]] : i8 to f8E8M0FNU
// CHECK: %[[INVERSE:.*]] = arith.extf %[[POWER]]
// CHECK: %[[ALL:.*]] = vector.broadcast %[[INVERSE]]
// CHECK: arith.mulf %{{.*}}, %[[ALL]]
// CHECK: memref.store %[[INVERSE]]
// POWERS-LABEL: .entry powers_any
// POWERS-NOT: {{rcp|div}}
mlafix.kernel @powers(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %inverses: !numbers {mlafix.dims = ["n"], mlafix.access = "write"},
                      %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %scales: !codes {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %s = mlafix.load %scales[%t] : !codes -> f32
    %row = mlafix.splat %s : f32 -> !tile
    %q = arith.divf %v, %row : !tile
    mlafix.store %q, %y[%t] : !tile, !rows
    %inverse = arith.divf %one, %s : f32
    mlafix.store %inverse, %inverses[%t] : f32, !numbers
  }
}

// The smallest allowed dividend depends on the number of digits of the constant. A dividend of 2^-100 is allowed for
// 448, but not for a constant of twenty bits, so that division stays.
// CHECK-LABEL: mlafix.kernel @small_any
// CHECK: %[[LEAST:.*]] = arith.constant 7.88860905E-31 : f32
// CHECK: %[[MOST:.*]] = arith.maximumf %{{.*}}, %[[LEAST]]
// CHECK: math.fma %[[MOST]]
// CHECK: arith.divf %[[MOST]]
// CHECK-LABEL: mlafix.kernel @others
mlafix.kernel @small(%y: !numbers {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !numbers {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %least = arith.constant 7.88860905E-31 : f32
  %c448 = arith.constant 448.0 : f32
  %long = arith.constant 1048575.0 : f32
  %n = memref.dim %y, %c0 : !numbers
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !numbers -> f32
    %most = arith.maximumf %v, %least : f32
    %a = arith.divf %most, %c448 : f32
    %b = arith.divf %most, %long : f32
    %sum = arith.addf %a, %b : f32
    mlafix.store %sum, %y[%t] : f32, !numbers
  }
}

// Divisions that stay: a dividend that may be small or 0, a constant of 24 bits, a constant below 1, and an unknown
// divisor.
// CHECK: arith.maximumf
// CHECK-COUNT-4: arith.divf
mlafix.kernel @others(%y: !numbers {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !numbers {mlafix.dims = ["n"], mlafix.access = "read"},
                      %s: f32) {
  %c0 = arith.constant 0 : index
  %least = arith.constant 1.0e-10 : f32
  %c448 = arith.constant 448.0 : f32
  %pi = arith.constant 3.14159274 : f32
  %small = arith.constant 0.75 : f32
  %n = memref.dim %y, %c0 : !numbers
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !numbers -> f32
    %most = arith.maximumf %v, %least : f32
    %a = arith.divf %v, %c448 : f32
    %b = arith.divf %most, %pi : f32
    %c = arith.divf %most, %small : f32
    %d = arith.divf %most, %s : f32
    %ab = arith.addf %a, %b : f32
    %cd = arith.addf %c, %d : f32
    %abcd = arith.addf %ab, %cd : f32
    mlafix.store %abcd, %y[%t] : f32, !numbers
  }
}

// 1 + e^-2|x| is known to be between 1 and 3, and 1 - e^-2|x| to be 0 or at least 2^-24, so the code checks no range.
// CHECK-LABEL: mlafix.kernel @bounded_any
// CHECK: %[[LESS:.*]] = arith.subf %{{.*}}, %[[POWER:.*]] : vector<1xf32>
// CHECK: %[[MORE:.*]] = arith.addf %[[POWER]]
// CHECK-NOT: arith.divf
// CHECK: nvvm.rcp.approx.ftz.f
// CHECK-NEXT: %[[ABOUT:.*]] = vector.{{broadcast|from_elements}}
// CHECK: %[[OFF:.*]] = math.fma %[[MORE]], %[[ABOUT]]
// CHECK: %[[MINUS_OFF:.*]] = arith.negf %[[OFF]]
// CHECK: %[[R:.*]] = math.fma %[[ABOUT]], %[[MINUS_OFF]], %[[ABOUT]]
// CHECK: %[[NEAR:.*]] = arith.mulf %[[LESS]], %[[R]]
// CHECK: %[[MINUS:.*]] = arith.negf %[[LESS]]
// CHECK: %[[REST:.*]] = math.fma %[[NEAR]], %[[MORE]], %[[MINUS]]
// CHECK: %[[MINUS_R:.*]] = arith.negf %[[R]]
// CHECK: math.fma %[[REST]], %[[MINUS_R]], %[[NEAR]]
mlafix.kernel @bounded(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : !tile
  %minus2 = arith.constant dense<-2.0> : !tile
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %size = math.absf %v : !tile
    %exponent = arith.mulf %size, %minus2 : !tile
    %power = math.exp %exponent : !tile
    %less = arith.subf %one, %power : !tile
    %more = arith.addf %one, %power : !tile
    %q = arith.divf %less, %more : !tile
    mlafix.store %q, %y[%t] : !tile, !rows
  }
}

// Both divisions stay: the exponential may be infinite, and the elements of v may be too small for an exact remainder.
// CHECK-LABEL: mlafix.kernel @unbounded_any
// CHECK-COUNT-2: arith.divf
mlafix.kernel @unbounded(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %z: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                         %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : !tile
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %power = math.exp %v : !tile
    %more = arith.addf %one, %power : !tile
    %less = arith.subf %one, %power : !tile
    %q = arith.divf %less, %more : !tile
    mlafix.store %q, %y[%t] : !tile, !rows
    %size = math.absf %v : !tile
    %minus = arith.negf %size : !tile
    %small = math.exp %minus : !tile
    %above1 = arith.addf %one, %small : !tile
    %r = arith.divf %v, %above1 : !tile
    mlafix.store %r, %z[%t] : !tile, !rows
  }
}
