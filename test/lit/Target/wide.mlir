// Accesses of 32 bytes need PTX 8.8. For code without such accesses, the PTX version is the lowest one that supports
// the chip.

// RUN: %mlafix-opt %s --target=sm_100 --emit=ptx | FileCheck %s --check-prefix=SM100
// RUN: %mlafix-opt %s --target=sm_120 --emit=ptx | FileCheck %s --check-prefix=SM100
// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx | FileCheck %s --check-prefix=SM90
// RUN: %mlafix-opt %S/gpu.mlir --target=sm_100 --emit=ptx | FileCheck %s --check-prefix=NARROW

// SM100: .version 8.8
// SM100: ld.global.v8.b32
// SM100: st.global.v8.b32

// SM90: .version 7.8
// SM90: ld.global.v4.b32
// SM90: ld.global.v4.b32

// NARROW: .version 8.6

module attributes {mlafix.signature = {name = "k", bindings = {}, aliases = [], args = []}} {
  llvm.func @k(%out: !llvm.ptr<1>, %in: !llvm.ptr<1>) attributes {nvvm.kernel, mlafix.variant = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    %x = llvm.load %in {alignment = 32 : i64} : !llvm.ptr<1> -> vector<16xbf16>
    llvm.store %x, %out {alignment = 32 : i64} : vector<16xbf16>, !llvm.ptr<1>
    llvm.return
  }
}
