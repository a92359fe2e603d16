// Code generation for a CPU kernel in the form that the passes produce.

// RUN: %mlafix-opt %s --target=x86-64-v3 --emit=object -o %t.o
// RUN: llvm-readelf -sSW %t.o | FileCheck %s --check-prefix=OBJECT
// RUN: %mlafix-opt %s --target=x86-64-v3 --emit=object | llvm-objdump -d - | FileCheck %s --check-prefix=V3
// RUN: %mlafix-opt %s --target=x86-64 --emit=object | llvm-objdump -d - | FileCheck %s --check-prefix=BASE
// RUN: %mlafix-opt %s --target=x86-64-v3 --emit=unit -o %t.mlafix
// RUN: %mlafix-opt %s --target=x86-64-v3 --emit=unit -o - | cmp %t.mlafix -

// There are no unwind tables, no library calls and no writable data.
// OBJECT-NOT: .eh_frame
// OBJECT-NOT: {{ WA }}
// OBJECT-NOT: {{GLOBAL .* UND}}
// OBJECT: GLOBAL DEFAULT {{.*}} scale_any
// OBJECT-NOT: {{GLOBAL .* UND}}

// A multiplication and an addition stay two instructions, since only the passes create fused multiply-adds.
// V3-NOT: vfmadd
// V3: vmulps {{.*}}%ymm
// V3-NOT: vfmadd

// BASE-NOT: ymm
// BASE: mulps
// BASE-NOT: ymm

module attributes {mlafix.signature = {
    name = "scale", bindings = {}, aliases = [],
    args = [{name = "out", kind = "tensor", dtype = "f32", dims = ["n"], shape = [-1], strides = [1],
             access = "update", optional = false}]}} {
  llvm.func @scale_any(%params: !llvm.ptr, %begin: i64, %end: i64) attributes {
      mlafix.variant = #mlafix.variant<
        "scale_any", guards = [], params = [<pointer, arg = 0>],
        geometry = #mlafix.cpu<[<arg = 0, dim = 0>], rows_per_block = 1>,
        layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    %out = llvm.load %params : !llvm.ptr -> !llvm.ptr
    llvm.br ^head(%begin : i64)
  ^head(%i: i64):
    %more = llvm.icmp "slt" %i, %end : i64
    llvm.cond_br %more, ^body, ^exit
  ^body:
    %p = llvm.getelementptr %out[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %x = llvm.load %p : !llvm.ptr -> f32
    %factor = llvm.mlir.constant(3.0 : f32) : f32
    %y = llvm.fmul %x, %factor : f32
    %z = llvm.fadd %y, %factor : f32
    llvm.store %z, %p : f32, !llvm.ptr
    %one = llvm.mlir.constant(1 : i64) : i64
    %next = llvm.add %i, %one : i64
    llvm.br ^head(%next : i64)
  ^exit:
    llvm.return
  }
}
