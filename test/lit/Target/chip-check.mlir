// If a chip lacks an operation, the compiler prints an error at the location of the operation. LLVM alone would end the
// process.

// RUN: split-file %s %t
// RUN: not %mlafix-opt %t/dependent.mlir --target=sm_89 --emit=ptx 2>&1 | FileCheck %t/dependent.mlir --check-prefix=DEPENDENT
// RUN: %mlafix-opt %t/dependent.mlir --target=sm_90 --emit=ptx | FileCheck %t/dependent.mlir --check-prefix=WAIT
// RUN: not %mlafix-opt %t/fp8.mlir --target=sm_86 --emit=ptx 2>&1 | FileCheck %t/fp8.mlir --check-prefix=FP8
// RUN: %mlafix-opt %t/fp8.mlir --target=sm_89 --emit=ptx | FileCheck %t/fp8.mlir --check-prefix=CVT
// RUN: not %mlafix-opt %t/intrinsic.mlir --target=sm_80 --emit=ptx 2>&1 | FileCheck %t/intrinsic.mlir --check-prefix=INTRINSIC
// RUN: not %mlafix-opt %t/log2.mlir --target=sm_90 --emit=ptx 2>&1 | FileCheck %t/log2.mlir --check-prefix=LOG2
// RUN: not %mlafix-opt %t/tanh.mlir --target=sm_75 --emit=ptx 2>&1 | FileCheck %t/tanh.mlir --check-prefix=TANH
// RUN: %mlafix-opt %t/tanh.mlir --target=sm_80 --emit=ptx | FileCheck %t/tanh.mlir --check-prefix=APPROX
// RUN: not %mlafix-opt %t/exact.mlir --target=sm_90 --emit=ptx 2>&1 | FileCheck %t/exact.mlir --check-prefix=EXACT
// RUN: not %mlafix-opt %t/extern.mlir --target=sm_90 --emit=ptx 2>&1 | FileCheck %t/extern.mlir --check-prefix=EXTERN

//--- dependent.mlir
// WAIT: griddepcontrol.wait
module attributes {mlafix.signature = {name = "k", bindings = {}, aliases = [], args = []}} {
  llvm.func @k() attributes {nvvm.kernel, mlafix.variant = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    // DEPENDENT: dependent.mlir:[[@LINE+1]]:5: error: expected sm_90 or later for 'nvvm.griddepcontrol', got sm_89
    nvvm.griddepcontrol wait
    llvm.return
  }
}

//--- fp8.mlir
// CVT: cvt.rn.satfinite.e4m3x2.f32
module attributes {mlafix.signature = {name = "k", bindings = {}, aliases = [], args = []}} {
  llvm.func @k(%p: !llvm.ptr<1>, %x: f32) attributes {nvvm.kernel, mlafix.variant = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    // FP8: error: expected sm_89 or later for 'nvvm.convert.f32x2.to.f8x2', got sm_86
    %y = nvvm.convert.f32x2.to.f8x2 %x, %x {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : i16 (f8E4M3FN)
    llvm.store %y, %p : i16, !llvm.ptr<1>
    llvm.return
  }
}

//--- intrinsic.mlir
module attributes {mlafix.signature = {name = "k", bindings = {}, aliases = [], args = []}} {
  llvm.func @k(%p: !llvm.ptr<1>, %x: bf16) attributes {nvvm.kernel, mlafix.variant = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    // INTRINSIC: error: expected sm_90 or later for 'llvm.nvvm.ex2.approx.ftz.bf16', got sm_80
    %y = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.bf16"(%x) : (bf16) -> bf16
    llvm.store %y, %p : bf16, !llvm.ptr<1>
    llvm.return
  }
}

//--- log2.mlir
module attributes {mlafix.signature = {name = "k", bindings = {}, aliases = [], args = []}} {
  llvm.func @k(%p: !llvm.ptr<1>, %x: f32) attributes {nvvm.kernel, mlafix.variant = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    // LOG2: error: expected operations that PTX has instructions for, got 'llvm.intr.log2'
    %y = llvm.intr.log2(%x) : (f32) -> f32
    llvm.store %y, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}

//--- tanh.mlir
// APPROX-DAG: tanh.approx.f32
// APPROX-DAG: sin.approx.f32
module attributes {mlafix.signature = {name = "k", bindings = {}, aliases = [], args = []}} {
  llvm.func @k(%p: !llvm.ptr<1>, %x: vector<2xf32>, %w: f32) attributes {nvvm.kernel, mlafix.variant = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    // TANH: error: expected sm_80 or later for 'llvm.intr.tanh', got sm_75
    %y = llvm.intr.tanh(%x) {fastmathFlags = #llvm.fastmath<afn>} : (vector<2xf32>) -> vector<2xf32>
    // TANH-NOT: error:
    %s = llvm.intr.sin(%w) {fastmathFlags = #llvm.fastmath<fast>} : (f32) -> f32
    llvm.store %y, %p : vector<2xf32>, !llvm.ptr<1>
    llvm.store %s, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}

//--- exact.mlir
module attributes {mlafix.signature = {name = "k", bindings = {}, aliases = [], args = []}} {
  llvm.func @k(%p: !llvm.ptr<1>, %x: f32, %d: f64) attributes {nvvm.kernel, mlafix.variant = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    // EXACT: error: expected operations that PTX has instructions for, got 'llvm.intr.tanh'
    %tanh = llvm.intr.tanh(%x) : (f32) -> f32
    // EXACT: error: expected operations that PTX has instructions for, got 'llvm.intr.sin'
    %sin = llvm.intr.sin(%x) : (f32) -> f32
    // EXACT: error: expected operations that PTX has instructions for, got 'llvm.intr.cos'
    %cos = llvm.intr.cos(%d) {fastmathFlags = #llvm.fastmath<afn>} : (f64) -> f64
    // EXACT: error: expected operations that PTX has instructions for, got 'llvm.intr.exp2'
    %exp2 = llvm.intr.exp2(%d) : (f64) -> f64
    // EXACT: error: expected operations that PTX has instructions for, got 'llvm.intr.lrint'
    %round = llvm.intr.lrint(%x) : (f32) -> i64
    llvm.return
  }
}

//--- extern.mlir
module attributes {mlafix.signature = {name = "k", bindings = {}, aliases = [], args = []}} {
  llvm.func @__nv_expf(f32) -> f32
  llvm.func @k(%p: !llvm.ptr<1>, %x: f32) attributes {nvvm.kernel, mlafix.variant = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    // EXTERN: error: expected every function that a kernel calls to be defined beside it, got a call of '__nv_expf'
    %y = llvm.call @__nv_expf(%x) : (f32) -> f32
    llvm.store %y, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}
