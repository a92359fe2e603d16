// Code that cannot be a position-independent image is refused. The error names the symbol.

// RUN: split-file %s %t
// RUN: not %mlafix-opt %t/undefined.mlir --target=x86-64-v3 -o %t/u 2>&1 | FileCheck %t/undefined.mlir --check-prefix=UNDEFINED
// RUN: not %mlafix-opt %t/undefined.mlir --target=x86-64-v3 --emit=object -o %t/u 2>&1 | FileCheck %t/undefined.mlir --check-prefix=UNDEFINED
// RUN: not %mlafix-opt %t/library.mlir --target=x86-64-v3 -o %t/u 2>&1 | FileCheck %t/library.mlir --check-prefix=LIBRARY
// RUN: not %mlafix-opt %t/writable.mlir --target=x86-64-v3 -o %t/u 2>&1 | FileCheck %t/writable.mlir --check-prefix=WRITABLE
// RUN: not %mlafix-opt %t/absolute.mlir --target=x86-64-v3 -o %t/u 2>&1 | FileCheck %t/absolute.mlir --check-prefix=ABSOLUTE
// RUN: not ls %t/u

//--- undefined.mlir
// UNDEFINED: undefined.mlir:{{[0-9]+}}:1: error: expected CPU code without undefined symbols, got 'malloc', 'puts'
module attributes {mlafix.signature = {name = "k", bindings = {}, aliases = [], args = []}} {
  llvm.func @puts(!llvm.ptr)
  llvm.func @malloc(i64) -> !llvm.ptr
  llvm.func @k(%params: !llvm.ptr, %begin: i64, %end: i64) attributes {mlafix.variant = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.cpu<[], rows_per_block = 1>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    %p = llvm.call @malloc(%begin) : (i64) -> !llvm.ptr
    llvm.call @puts(%p) : (!llvm.ptr) -> ()
    llvm.return
  }
}

//--- library.mlir
// LIBRARY: error: expected CPU code without undefined symbols, got 'exp2f'
module attributes {mlafix.signature = {name = "k", bindings = {}, aliases = [], args = []}} {
  llvm.func @k(%params: !llvm.ptr, %begin: i64, %end: i64) attributes {mlafix.variant = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.cpu<[], rows_per_block = 1>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    %x = llvm.load %params : !llvm.ptr -> f32
    %y = llvm.intr.exp2(%x) : (f32) -> f32
    llvm.store %y, %params : f32, !llvm.ptr
    llvm.return
  }
}

//--- writable.mlir
// WRITABLE: error: expected CPU code without writable data, got a section '.bss
module attributes {mlafix.signature = {name = "k", bindings = {}, aliases = [], args = []}} {
  llvm.mlir.global internal @calls(0 : i64) : i64
  llvm.func @k(%params: !llvm.ptr, %begin: i64, %end: i64) attributes {mlafix.variant = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.cpu<[], rows_per_block = 1>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    %p = llvm.mlir.addressof @calls : !llvm.ptr
    %x = llvm.load volatile %p : !llvm.ptr -> i64
    llvm.store volatile %end, %p : i64, !llvm.ptr
    llvm.store %x, %params : i64, !llvm.ptr
    llvm.return
  }
}

//--- absolute.mlir
// ABSOLUTE: error: expected
// ABSOLUTE-SAME: got
module attributes {mlafix.signature = {name = "k", bindings = {}, aliases = [], args = []}} {
  llvm.mlir.global internal constant @table() : !llvm.array<2 x ptr> {
    %none = llvm.mlir.undef : !llvm.array<2 x ptr>
    %f = llvm.mlir.addressof @one : !llvm.ptr
    %g = llvm.mlir.addressof @two : !llvm.ptr
    %a = llvm.insertvalue %f, %none[0] : !llvm.array<2 x ptr>
    %b = llvm.insertvalue %g, %a[1] : !llvm.array<2 x ptr>
    llvm.return %b : !llvm.array<2 x ptr>
  }
  llvm.func @one(%x: !llvm.ptr) { llvm.return }
  llvm.func @two(%x: !llvm.ptr) {
    %zero = llvm.mlir.constant(0 : i64) : i64
    llvm.store %zero, %x : i64, !llvm.ptr
    llvm.return
  }
  llvm.func @k(%params: !llvm.ptr, %begin: i64, %end: i64) attributes {mlafix.variant = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.cpu<[], rows_per_block = 1>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    %table = llvm.mlir.addressof @table : !llvm.ptr
    %slot = llvm.getelementptr %table[%begin] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
    %f = llvm.load %slot : !llvm.ptr -> !llvm.ptr
    llvm.call %f(%params) : !llvm.ptr, (!llvm.ptr) -> ()
    llvm.return
  }
}
