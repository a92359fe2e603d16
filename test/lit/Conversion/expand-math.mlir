// Operations that would become library calls are expanded. Operations for which the processor has instructions are not.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(llvm.func(mlafix-expand-math))" | FileCheck %s

module attributes {mlafix.target = "x86-64-v3"} {
  // CHECK-LABEL: llvm.func @level
  // CHECK-NOT: math.exp2
  llvm.func @level(%x: f32, %b: bf16, %h: f16) {
    // exp2 is a polynomial of degree 7.
    // CHECK-COUNT-7: math.fma
    %a = math.exp2 %x : f32
    // CHECK: arith.bitcast %{{.*}} : bf16 to i16
    // CHECK: arith.shli
    %c = arith.extf %b : bf16 to f32
    // CHECK: arith.extf %{{.*}} : f16 to f32
    %d = arith.extf %h : f16 to f32
    // CHECK: math.fma
    %e = math.fma %x, %x, %x : f32
    // CHECK: llvm.return
    llvm.return
  }
}

// -----

module attributes {mlafix.target = "x86-64"} {
  // The baseline rounds with an addition, and truncates with a conversion to integers.
  // CHECK-LABEL: llvm.func @whole
  // CHECK-NOT: math.roundeven
  // CHECK: %[[UP:.*]] = arith.addf
  // CHECK: arith.subf %[[UP]]
  // CHECK-NOT: math.trunc
  // CHECK: arith.fptosi
  // CHECK: llvm.return
  llvm.func @whole(%x: f32) {
    %a = math.roundeven %x : f32
    %b = math.trunc %x : f32
    llvm.return
  }
  // The baseline has neither F16C nor FMA.
  // CHECK-LABEL: llvm.func @baseline
  // CHECK-NOT: math.fma
  // CHECK-NOT: f16 to f32
  // CHECK: arith.bitcast %{{.*}} : f16 to i16
  // CHECK: arith.extf %{{.*}} : f32 to f64
  // CHECK: arith.truncf %{{.*}} : f64 to f32
  // CHECK-NOT: math.fma
  // CHECK: llvm.return
  llvm.func @baseline(%x: f32, %h: f16) {
    %d = arith.extf %h : f16 to f32
    %e = math.fma %x, %x, %d : f32
    llvm.return
  }
}

// -----

module attributes {mlafix.target = "x86-64-v3"} {
  llvm.func @library(%x: f32) {
    // expected-error @below {{expected math.exp, exp2, log, log2, sqrt, rsqrt, sin, cos, erf, tanh, fma, absf, absi, floor, ceil, roundeven, trunc, copysign, ctlz or ctpop, got 'math.atan'}}
    %a = math.atan %x : f32
    llvm.return
  }
}
