// LLVM recognises a loop that clears a buffer, but must not replace it by a call of memset.

// RUN: not %mlafix-opt %s --target=x86-64-v3,x86-64 --emit=unit 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: %mlafix-opt %s --target=x86-64-v3 --emit=llvm | FileCheck %s
// RUN: %mlafix-opt %s --target=x86-64-v3 --emit=unit -o %t.mlafix

// TWO: error: expected one target and no bindings for a source that is lowered already, got 2 targets
// CHECK-NOT: memset

module attributes {mlafix.signature = {name = "clear", bindings = {}, aliases = [], args = []}} {
  llvm.func @clear(%params: !llvm.ptr, %begin: i64, %end: i64) attributes {
      mlafix.variant = #mlafix.variant<"clear", guards = [], params = [], geometry = #mlafix.cpu<[], rows_per_block = 1>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i64) : i64
    llvm.br ^head(%begin : i64)
  ^head(%i: i64):
    %more = llvm.icmp "slt" %i, %end : i64
    llvm.cond_br %more, ^body, ^exit
  ^body:
    %p = llvm.getelementptr %params[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    llvm.store %zero, %p : i32, !llvm.ptr
    %next = llvm.add %i, %one : i64
    llvm.br ^head(%next : i64)
  ^exit:
    llvm.return
  }
}
