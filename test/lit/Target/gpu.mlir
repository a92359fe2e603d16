// Code generation for a GPU kernel in the form that the passes produce.

// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: %mlafix-opt %s --target=sm_90 --emit=llvm | FileCheck %s --check-prefix=LLVM

// The PTX version is the lowest one that supports the chip, so that old drivers accept it.
// PTX: .version 7.8
// PTX: .target sm_90
// PTX: .visible .entry copy_aligned(
// PTX: .param .u64 .ptr .global .align 1 copy_aligned_param_0
// PTX: .reqntid 128
// PTX: ld.global.v4.b32
// PTX: st.global.v4.b32
// PTX-NOT: .visible
// PTX-NOT: .extern

// LLVM: target triple = "nvptx64-nvidia-cuda"
// LLVM: define dso_local ptx_kernel void @copy_aligned(
// LLVM-NOT: @twice
// LLVM-NOT: mlafix

module attributes {mlafix.signature = {
    name = "copy", bindings = {D = 8, T = "bf16"}, aliases = [[0, 1]],
    args = [{name = "out", kind = "tensor", dtype = "bf16", dims = ["n", "D"], shape = [-1, 8], strides = [-1, 1],
             access = "write", optional = false},
            {name = "in", kind = "tensor", dtype = "bf16", dims = ["n", "D"], shape = [-1, 8], strides = [-1, 1],
             access = "read", optional = false}]}} {
  llvm.func @copy_aligned(%out: !llvm.ptr<1>, %in: !llvm.ptr<1>) attributes {
      nvvm.kernel, nvvm.reqntid = array<i32: 128>,
      mlafix.variant = #mlafix.variant<
        "copy_aligned", guards = [<align, args = [0, 1], bytes = 16>],
        params = [<pointer, arg = 0>, <pointer, arg = 1>],
        geometry = #mlafix.grid<[<arg = 0, dim = 0>], rows_per_block = 128, threads = 128, least_threads = 128>,
        layout = <lanes = 1, packs = 1, pack = 8, rows = 128>>} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %wide = llvm.sext %tid : i32 to i64
    %twice = llvm.call @twice(%wide) : (i64) -> i64
    %from = llvm.getelementptr %in[%twice] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, vector<4xbf16>
    %to = llvm.getelementptr %out[%twice] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, vector<4xbf16>
    %value = llvm.load %from {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
    llvm.store %value, %to {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @twice(%x: i64) -> i64 {
    %one = llvm.mlir.constant(1 : i64) : i64
    %y = llvm.shl %x, %one : i64
    llvm.return %y : i64
  }
}
