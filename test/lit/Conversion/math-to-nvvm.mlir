// Approximate instructions are used if they satisfy N10 (in docs/Dialect.md), or if an operation's flags allow them.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(llvm.func(mlafix-math-to-nvvm))" | FileCheck %s

// CHECK-LABEL: llvm.func @approximate
llvm.func @approximate(%x: f32, %y: f32) {
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"
  %a = math.exp2 %x : f32
  // CHECK: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"
  %b = math.rsqrt %x : f32
  // CHECK: %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
  // CHECK: arith.mulf %{{.*}}, %[[R]]
  %c = arith.divf %x, %y fastmath<arcp> : f32
  // CHECK: llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"
  %d = math.log2 %x fastmath<afn> : f32
  // The compiler sets afn for exponentials of numbers that are at most 0, if the exponentials are summed.
  // CHECK-NOT: arith.select
  // CHECK: arith.mulf
  // CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  // CHECK-NEXT: llvm.return
  %e = math.exp %x fastmath<afn> : f32
  llvm.return
}

// CHECK-LABEL: llvm.func @exact
// CHECK-NOT: lg2
llvm.func @exact(%x: f32, %y: f32) {
  // CHECK: arith.divf %{{.*}}, %{{.*}} : f32
  %a = arith.divf %x, %y : f32
  // Without afn, log2 is a series in a quotient that is near 0.
  // CHECK: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
  // CHECK-COUNT-6: math.fma
  %b = math.log2 %x : f32
  // CHECK: math.sqrt
  %c = math.sqrt %x : f32
  llvm.return
}

// -----

llvm.func @library(%x: f32) {
  // expected-error @below {{expected math.exp, exp2, log, log2, sqrt, rsqrt, sin, cos, erf, tanh, fma, absf, absi, floor, ceil, roundeven, trunc, copysign, ctlz or ctpop, got 'math.atan'}}
  %a = math.atan %x : f32
  llvm.return
}

// -----

// Polynomials approximate these functions on every target. Sine and cosine differ by a quarter turn. erf and tanh also
// use the target's exp2.
// CHECK-LABEL: llvm.func @angles
llvm.func @angles(%x: f32) {
  // CHECK: %[[SHIFTED:.*]] = math.fma
  // CHECK: arith.bitcast %[[SHIFTED]]
  // CHECK-COUNT-2: math.fma
  // CHECK: arith.select
  // CHECK-COUNT-2: arith.xori
  // CHECK-NOT: math.sin
  %a = math.sin %x : f32
  // CHECK-NOT: math.cos
  %b = math.cos %x : f32
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"
  // CHECK-NOT: math.erf
  %c = math.erf %x : f32
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"
  // CHECK: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
  // CHECK-NOT: math.tanh
  %t = math.tanh %x : f32
  // CHECK: math.roundeven
  %d = math.roundeven %x : f32
  // CHECK: math.trunc
  %e = math.trunc %x : f32
  llvm.return
}

// An assembler that knows that a value is not negative compiles these comparisons wrongly for NaN, so NaN is tested by
// setp.num.
// CHECK-LABEL: llvm.func @comparisons
llvm.func @comparisons(%x: f32, %v: vector<2xf32>) -> i1 {
  %minus = arith.constant -1.0 : f32
  %zero = arith.constant dense<0.0> : vector<2xf32>
  %one = arith.constant 1.0 : f32
  // CHECK: %[[ABS:.*]] = math.absf
  %abs = math.absf %x : f32
  // CHECK: %[[NUM:.*]] = llvm.inline_asm {{.*}}"setp.num.f32 $0, $1, $1;", "=b,f" %[[ABS]]
  // CHECK: %[[LE:.*]] = arith.cmpf ole, %{{.*}}, %[[ABS]]
  // CHECK: arith.andi %[[LE]], %[[NUM]] : i1
  %a = arith.cmpf ole, %minus, %abs : f32
  // CHECK-COUNT-2: setp.num.f32
  // CHECK: %[[GE:.*]] = arith.cmpf oge
  // CHECK: arith.andi %[[GE]], %{{.*}} : vector<2xi1>
  %b = arith.cmpf oge, %v, %zero : vector<2xf32>
  // CHECK-NOT: setp.num
  %c = arith.cmpf oge, %abs, %one : f32
  %d = arith.cmpf olt, %abs, %minus : f32
  %e = arith.cmpf uge, %abs, %minus : f32
  %f = vector.extract %b[0] : i1 from vector<2xi1>
  %g = arith.andi %a, %c : i1
  %h = arith.andi %d, %e : i1
  %i = arith.andi %g, %h : i1
  %j = arith.andi %i, %f : i1
  llvm.return %j : i1
}
