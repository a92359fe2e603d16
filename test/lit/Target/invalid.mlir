// Tests the errors for lowered modules whose description (`mlafix.signature`, `mlafix.variant`) does not fit their
// code.

// RUN: split-file %s %t
// RUN: not %mlafix-opt %t/none.mlir --target=sm_90 2>&1 | FileCheck %t/none.mlir --check-prefix=NONE
// RUN: not %mlafix-opt %t/signature.mlir --target=sm_90 2>&1 | FileCheck %t/signature.mlir --check-prefix=SIGNATURE
// RUN: not %mlafix-opt %t/entry.mlir --target=sm_90 2>&1 | FileCheck %t/entry.mlir --check-prefix=ENTRY
// RUN: not %mlafix-opt %t/name.mlir --target=sm_90 2>&1 | FileCheck %t/name.mlir --check-prefix=NAME
// RUN: not %mlafix-opt %t/value.mlir --target=sm_90 2>&1 | FileCheck %t/value.mlir --check-prefix=VALUE
// RUN: not %mlafix-opt %t/dialect.mlir --target=sm_90 2>&1 | FileCheck %t/dialect.mlir --check-prefix=DIALECT

//--- none.mlir
// NONE: error: expected at least one function with 'mlafix.variant' in a lowered module, got none
module attributes {mlafix.signature = {name = "k"}} {
  llvm.func @k() { llvm.return }
}

//--- signature.mlir
// SIGNATURE: error: expected a dictionary 'mlafix.signature' on a lowered module, got "k"
module attributes {mlafix.signature = "k"} {
  llvm.func @k() { llvm.return }
}

//--- entry.mlir
module attributes {mlafix.signature = {name = "k"}} {
  // ENTRY: [[@LINE+1]]:3: error: expected 'mlafix.variant' to be a #mlafix.variant of the function's name, got #mlafix.variant<"j"
  llvm.func @k() attributes {mlafix.variant = #mlafix.variant<"j", guards = [], params = [], geometry = #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} { llvm.return }
}

//--- name.mlir
// NAME: error: expected a string 'name' in 'mlafix.signature', got 1 : i64
module attributes {mlafix.signature = {name = 1}} {
  llvm.func @k() attributes {mlafix.variant = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} { llvm.return }
}

//--- value.mlir
// VALUE: error: expected an attribute that the manifest has a form for, got 1.000000e+00 : f32
module attributes {mlafix.signature = {name = "k", x = 1.0 : f32}} {
  llvm.func @k() attributes {mlafix.variant = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} { llvm.return }
}

//--- dialect.mlir
// DIALECT: error: cannot be converted to LLVM IR
// DIALECT: error: expected a module that can be translated to LLVM IR, got one that cannot
module attributes {mlafix.signature = {name = "k"}} {
  llvm.func @k(%x: i32) attributes {mlafix.variant = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    %y = arith.addi %x, %x : i32
    llvm.return
  }
}
