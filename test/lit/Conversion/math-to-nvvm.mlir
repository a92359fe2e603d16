// Approximate instructions stand where they hold N10, or where an operation's flags allow them.
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
  llvm.return
}

// CHECK-LABEL: llvm.func @exact
// CHECK-NOT: lg2
llvm.func @exact(%x: f32, %y: f32) {
  // CHECK: arith.divf %{{.*}}, %{{.*}} : f32
  %a = arith.divf %x, %y : f32
  // A series, of the quotient that lies near 0.
  // CHECK: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
  // CHECK-COUNT-6: math.fma
  %b = math.log2 %x : f32
  // CHECK: math.sqrt
  %c = math.sqrt %x : f32
  llvm.return
}

// -----

llvm.func @library(%x: f32) {
  // expected-error @below {{expected math.exp, exp2, log, log2, sqrt, rsqrt, fma, absf, absi, floor, ceil, copysign, ctlz or ctpop, got 'math.sin'}}
  %a = math.sin %x : f32
  llvm.return
}
