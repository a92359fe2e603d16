// Without options of the compiler (--emit, --target, …), mlafix-opt works like mlir-opt for the dialects that mlafix
// uses.

// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(canonicalize)' | FileCheck %s
// RUN: %mlafix-opt --help | FileCheck %s --check-prefix=HELP
// RUN: not %mlafix-opt %s --emit=source --canonicalize 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not %mlafix-opt %s --pass-pipeline='builtin.module(cse)' --resource-usage 2>&1 | FileCheck %s --check-prefix=BOTH

// HELP: OVERVIEW: mlafix compiler and pass driver
// HELP-NOT: aarch64
// HELP: --mlafix-plan-kernel
// HELP: mlafix compiler:
// HELP: --specialize=<NAME=VALUE,…>

// BOTH: error: expected options of the compiler (--emit, --target, …) or passes, got both

// CHECK-LABEL: func.func @folds
// CHECK-NEXT: %[[THREE:.*]] = arith.constant 3 : i32
// CHECK-NEXT: return %[[THREE]]
func.func @folds() -> i32 {
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %sum = arith.addi %one, %two : i32
  return %sum : i32
}

// -----

// expected-error @+2 {{Dialect `linalg' not found for custom op}}
// expected-note @below {{Available dialects: arith, builtin, cf, func, gpu, index, llvm, math, memref, mlafix, mlafix_thread, nvvm, scf, tensor, ub, vector}}
"builtin.module"() ({ linalg.fill }) : () -> ()
