//===- Passes.td - passes out of the mlafix dialect -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_PASSES
#define MLAFIX_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// On kernels: conversions of floats
//===----------------------------------------------------------------------===//

def SplitConversionsPass : Pass<"mlafix-split-conversions", "::mlafix::KernelOp"> {
  let summary = "conversions of narrow floats go through f32";
  let description = [{
    Splits every conversion from or to a float of less than 32 bits so that it goes through f32, as in the kernel's
    source before folds joined two conversions. A value that goes through f32 is rounded there (N7). Targets have
    instructions, or expansions by later passes, only for conversions from and to f32.

    ```mlir
    // Before
    %y = arith.sitofp %x : i32 to bf16
    // After
    %f = arith.sitofp %x : i32 to f32
    %y = arith.truncf %f : f32 to bf16
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ConvertFp8Pass : Pass<"mlafix-convert-fp8", "::mlafix::KernelOp"> {
  let summary = "f32 becomes the bits of fp8 and fp4, and the other way round";
  let description = [{
    Replaces every truncation of f32 to f8E4M3FN or f8E5M2 by operations that compute its bits. A cast of the bits to
    fp8 remains, which `mlafix-floats-to-bits` removes. The conversion rounds to nearest even and saturates at +-448 or
    +-57344; infinities saturate, too, and NaN stays NaN (N7). Extensions of fp8 are replaced in the same way. Targets
    from sm_89 on have instructions that convert two elements at once; the conversion to f32 takes two steps, through
    f16. Other targets use integer arithmetic, which gives the same bits. The clamp that a store applies to its value is
    removed, because the conversion saturates. f8E8M0FNU, the exponent of an f32, is computed by integer arithmetic on
    all targets, and rounded up.

    f4E2M1FN is computed by arithmetic on all targets, for packs whose elements are between -6 and 6. The codes are
    vectors of i4, two to a byte. A CPU adds a power of two that depends on the element's exponent. A GPU evaluates
    three linear functions of the magnitude, rounds each, and takes the lowest as the code. It compares them as integers
    if that is one instruction. It packs eight elements into a word and adds their signs by byte permutations.

    ```mlir
    // Before
    %y = arith.truncf %x : vector<2xf32> to vector<2xf8E4M3FN>
    // After, for sm_90
    %low = vector.extract %x[0] : f32 from vector<2xf32>
    %high = vector.extract %x[1] : f32 from vector<2xf32>
    %pair = nvvm.convert.f32x2.to.f8x2 %high, %low {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : vector<2xi8>(f8E4M3FN)
    …
    %y = builtin.unrealized_conversion_cast %bits : vector<2xi8> to vector<2xf8E4M3FN>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect", "::mlir::vector::VectorDialect"];
}

//===----------------------------------------------------------------------===//
// Kernels to functions
//===----------------------------------------------------------------------===//

def KernelsToNVVMPass : Pass<"mlafix-kernels-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "distributed kernels become NVVM functions";
  let description = [{
    Every kernel becomes an `llvm.func` with the kernel ABI of docs/UnitFormat.md: one pointer per memref, plus only the
    sizes and strides that are dynamic and used. Accesses become pointer arithmetic in 64 bits (N13) in the global
    address space. No pointer is `noalias`: outputs may be inputs (N11), and `ld.global.nc` would then read stale data.
    Loads of f32 rows of at most `streamedRowBytes` are `nontemporal` if a loop reads the rows at indices from memory.
    Each reduction, scan or swap across warps has its own shared memory. If the total exceeds 48 bytes per thread or the
    memory of a block, all of them use the same memory in turn.

    ```mlir
    // Before
    mlafix.kernel @zero(%y: memref<?xf32, strided<[1], offset: ?>> {…}) attributes {geometry = #mlafix.grid<…>, …} {
      …
      memref.store %zero, %y[%i] : memref<?xf32, strided<[1], offset: ?>>
    }
    // After
    llvm.func @zero(%y: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, mlafix.variant = #mlafix.variant<…>} {
      …
      %p = llvm.getelementptr %y[%offset] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      llvm.store %zero, %p {alignment = 4 : i64} : f32, !llvm.ptr<1>
      llvm.return
    }
    ```
  }];
  let dependentDialects = [
    "::mlafix::MlafixThreadDialect", "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def KernelsToCPUPass : Pass<"mlafix-kernels-to-cpu", "::mlir::ModuleOp"> {
  let summary = "distributed kernels become host functions";
  let description = [{
    Every kernel becomes `void entry(const uint64_t *params, int64_t begin, int64_t end)`. A fence follows stores that
    bypass the caches: they must complete before the caller reports its rows as done.

    ```mlir
    // Before
    mlafix.kernel @zero(%y: memref<?xf32, strided<[1], offset: ?>> {…}, %begin: index, %end: index) attributes {geometry = #mlafix.cpu<…>, …} {…}
    // After
    llvm.func @zero(%params: !llvm.ptr, %begin: i64, %end: i64) attributes {mlafix.variant = #mlafix.variant<…>} {
      %slot = llvm.getelementptr %params[0] : (!llvm.ptr) -> !llvm.ptr, i64
      %y = llvm.load %slot {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
      …
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect"];
}

//===----------------------------------------------------------------------===//
// On functions
//===----------------------------------------------------------------------===//

def MathToNVVMPass : Pass<"mlafix-math-to-nvvm", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "math becomes NVIDIA's instructions";
  let description = [{
    No function of `math` becomes a libdevice call. Approximate instructions are used where they satisfy N10 for all
    operands, including subnormal ones: `ex2` for `exp2`, `ex2` with a correction of the exponent's rounding error for
    `exp`, and `rsqrt`. Elsewhere they are used only if an operation's flags permit it: `rcp.ftz` for a division with
    `arcp`, `lg2.ftz` for a logarithm with `afn`, `ex2.ftz` without the correction for an exponential with `afn`. Only
    `mlafix-lower-states` sets these flags. Any other division is `div.rn`, which keeps subnormal results and divides by
    numbers beyond 2^126. Any other logarithm is a series: the error of `lg2` is absolute and leaves no digit near 1.
    Saturating conversions to bytes, from rounded f32 or from i32, are packed two at a time.

    ```mlir
    // Before
    %p = math.exp2 %x : f32
    %q = arith.divf %p, %s fastmath<arcp> : f32
    // After
    %p = llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"(%x) : (f32) -> f32
    %r = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%s) : (f32) -> f32
    %q = arith.mulf %p, %r : f32
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

def ExpandMathPass : Pass<"mlafix-expand-math", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "math and conversions that a processor may lack are written out";
  let description = [{
    Replaces functions that would become calls of a library: exp, exp2, log, log2, sin, cos, tanh, erf and rsqrt of f32
    by arithmetic, and conversions from and to bf16 by integer arithmetic. The x86-64 baseline has neither F16C nor FMA;
    for it, conversions from and to f16, fma, floor, ceil, trunc and roundeven are replaced, too. Any other math is an
    error at its location. For CPUs only.

    ```mlir
    // Before
    %f = arith.extf %x : bf16 to f32
    // After
    %bits = arith.bitcast %x : bf16 to i16
    %wide = arith.extui %bits : i16 to i32
    %shifted = arith.shli %wide, %c16 : i32
    %f = arith.bitcast %shifted : i32 to f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def FloatsToBitsPass : Pass<"mlafix-floats-to-bits", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "floats that are only moved become integers";
  let description = [{
    Replaces every value of a float type of at most `width` bits by its bits, an integer: the target can move such
    values but cannot compute with them. Only the remaining conversions use the float type. Arithmetic on it is an error
    at its location. LLVM has no fp8. It moves bf16, and f16 on the x86-64 baseline, through f32, and calls a library to
    convert back.

    ```mlir
    // Before, with width=16
    %v = llvm.load %p : !llvm.ptr -> bf16
    llvm.store %v, %q : bf16, !llvm.ptr
    // After
    %v = llvm.load %p : !llvm.ptr -> i16
    llvm.store %v, %q : i16, !llvm.ptr
    ```
  }];
  let options = [Option<"width", "width", "unsigned", "16", "bits of the widest float that is replaced">];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

//===----------------------------------------------------------------------===//
// Functions to the LLVM dialect
//===----------------------------------------------------------------------===//

def RegionsToBranchesPass : Pass<"mlafix-regions-to-branches", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "structured control flow becomes branches between blocks";
  let description = [{
    Applies the patterns of `convert-scf-to-cf`, last op first. Lowering an op with regions splits its block and moves
    the part behind it. In the order of that pass, first to last, the rest of a long block would move once per branch.

    ```mlir
    // Before
    scf.if %inside {
      llvm.store %v, %p : f32, !llvm.ptr
    }
    // After
    cf.cond_br %inside, ^bb1, ^bb2
    ^bb1:
      llvm.store %v, %p : f32, !llvm.ptr
      cf.br ^bb2
    ^bb2:
    ```
  }];
  let dependentDialects = ["::mlir::cf::ControlFlowDialect"];
}

def SlicesToShufflesPass : Pass<"mlafix-slices-to-shuffles", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "slices of vectors become shuffles";
  let description = [{
    Rewrites `vector.extract_strided_slice` and `vector.insert_strided_slice`, for which `convert-to-llvm` has no
    pattern. Also folds constants, removes unused ops and merges blocks.

    ```mlir
    // Before
    %half = vector.extract_strided_slice %row {offsets = [0], sizes = [4], strides = [1]} : vector<8xf32> to vector<4xf32>
    // After
    %half = vector.shuffle %row, %row [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::vector::VectorDialect"];
}

#endif // MLAFIX_CONVERSION_PASSES
