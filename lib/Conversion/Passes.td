//===- Passes.td - passes out of the mlafix dialect -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_PASSES
#define MLAFIX_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def MlafixToNVVMPass : Pass<"mlafix-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "distributed kernels become NVVM functions";
  let description = [{
    Every kernel becomes an `llvm.func` with the kernel ABI of docs/UnitFormat.md: one pointer per memref, plus only the sizes and strides that
    are dynamic and used. Accesses become pointer arithmetic in 64 bits (N13) in the global address space; no pointer is `noalias`, since outputs may
    be inputs (N11) and `ld.global.nc` would then read stale data. No function of `math` becomes a libdevice call.

    The approximate instructions stand where they hold N10 over the whole range of their operands, subnormal ones included: `ex2` for `exp2`, and with what rounding takes
    from the exponent put back for `exp`; `rsqrt`. Elsewhere they stand only where an operation's flags say so: `rcp.ftz` for a division with `arcp`, `lg2.ftz` for a logarithm
    with `afn`. These flags come from `mlafix-lower-states` alone. Any other division is `div.rn`, which keeps subnormal results and divides by numbers beyond 2^126; any
    other logarithm is a series, since the error of `lg2` is absolute and leaves no digit near 1.

    Where f16 is stored, bf16 is widened by integer arithmetic: between a widening from bf16 and a narrowing to f16, LLVM would compute in f16, which has as many
    digits but ends at 65504.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::arith::ArithDialect", "::mlir::vector::VectorDialect"];
}

def MlafixToCPUPass : Pass<"mlafix-to-cpu", "::mlir::ModuleOp"> {
  let summary = "distributed kernels become host functions";
  let description = [{
    Every kernel becomes `void entry(const uint64_t *params, int64_t begin, int64_t end)`. What a processor or libgcc may lack is written out so that the code
    calls nothing: exp2 and log2 as polynomials, bf16 conversions in integers, and, for the x86-64 baseline, f16 conversions and fused multiply-add.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

#endif // MLAFIX_CONVERSION_PASSES
