// Floats that are only moved become integers of their width. An arithmetic conversion still gets a float, by a bitcast
// of the integer.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(llvm.func(mlafix-floats-to-bits))" | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: %mlafix-opt %s --split-input-file --pass-pipeline="builtin.module(llvm.func(mlafix-floats-to-bits{width=8}))" | FileCheck %s --check-prefixes=CHECK,NARROW

// CHECK-LABEL: llvm.func @move
llvm.func @move(%x: !llvm.ptr, %y: !llvm.ptr, %p: i1) {
  %zero = arith.constant 0.0 : bf16
  // WIDE: llvm.load %{{.*}} : !llvm.ptr -> i16
  // NARROW: llvm.load %{{.*}} : !llvm.ptr -> bf16
  %v = llvm.load %x : !llvm.ptr -> bf16
  // WIDE: arith.select %{{.*}} : i16
  %w = arith.select %p, %v, %zero : bf16
  // WIDE: llvm.store %{{.*}} : i16
  // NARROW: llvm.store %{{.*}} : bf16
  llvm.store %w, %y : bf16, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @half
llvm.func @half(%x: !llvm.ptr) {
  // WIDE: %[[BITS:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i16
  // WIDE: %[[HALF:.*]] = arith.bitcast %[[BITS]] : i16 to f16
  // WIDE: arith.extf %[[HALF]] : f16 to f32
  %v = llvm.load %x : !llvm.ptr -> f16
  %f = arith.extf %v : f16 to f32
  llvm.return
}

// Two casts that cancel are removed: i8 to f8E4M3FN, and back to i8.
// CHECK-LABEL: llvm.func @fp8
// CHECK-NOT: unrealized_conversion_cast
// CHECK: llvm.return
llvm.func @fp8(%x: !llvm.ptr, %bits: i8) {
  %v = builtin.unrealized_conversion_cast %bits : i8 to f8E4M3FN
  %b = builtin.unrealized_conversion_cast %v : f8E4M3FN to i8
  llvm.store %b, %x : i8, !llvm.ptr
  llvm.return
}

// -----

llvm.func @arithmetic(%x: !llvm.ptr) {
  %v = llvm.load %x : !llvm.ptr -> bf16
  // expected-error @below {{expected only moves and conversions of values of bf16, got 'arith.addf'; compute in f32}}
  %w = arith.addf %v, %v : bf16
  llvm.return
}
