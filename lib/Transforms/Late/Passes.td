//===- Passes.td - optimisations of distributed kernels ----*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// After the planning of layouts and the distribution over threads: on kernels
// of vectors and scalars, and on the functions that they become.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LATE_PASSES
#define MLAFIX_TRANSFORMS_LATE_PASSES

include "lib/Transforms/PassOptions.td"

def SkipZeroWeightAddsPass : Pass<"mlafix-skip-zero-weight-adds", "::mlafix::KernelOp"> {
  let summary = "a sum stays as it is where the factor of what is added is 0";
  let description = [{
    The payload of a state whose weight is 0 is replaced by -0.0 before it is added (N5). Where the weight is 0, this pass takes the sum as it was before, in
    place of the sum with -0.0: the same number, by a predicate of the addition, so that a GPU needs no selection for each element. Not for targets that compute
    with two f32 at once, whose selections are none the fewer.

    The merged row of two states of which neither has one is 0. Where a kernel computes with such rows, of 8 elements or more in a lane, the selections of their
    elements go, too: there, both payloads are -0.0, and the numbers that the first one and the sum are multiplied by become 1 and -1.

    ```mlir
    // Before
    %payload = arith.select %isZero, %minusZeros, %x : vector<8xf32>
    %sum = math.fma %weights, %payload, %before : vector<8xf32>
    // After
    %more = math.fma %weights, %x, %before : vector<8xf32>
    %sum = arith.select %isZero, %before, %more : vector<8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def WidenWordsPass : Pass<"mlafix-widen-words", "::mlafix::KernelOp"> {
  let summary = "floats of 16 bits are masked, and bf16 is widened, as words of 32 bits";
  let description = [{
    A pack of bf16 or f16 that is masked after it was widened is masked before, as words of two elements: half as many selections. A pack of bf16 that is computed
    with is widened by two instructions a word, where the instruction that widens one element takes three. What both branches of an `scf.if` widen is widened behind
    them, so that words come out of it, too. Fp8 that is multiplied by a number and masked then is masked before, as words of four elements, and the number with 1.
    Not for targets that compute with two f32 at once: what LLVM makes of words there takes more registers.

    What is widened for both branches of an `scf.if`, and used nowhere else, is widened in each: until then it takes half of the registers, or a quarter, and each may mask it.

    LLVM narrows arithmetic between a widening and a narrowing to the narrow type if that has as many digits: to f16 between bf16 and f16, but f16 ends at
    65504 where bf16 ends at 3.4e38. In a kernel that narrows to f16, bf16 is therefore always widened by integer arithmetic, which LLVM does not recognise. For
    GPUs: a CPU converts bf16 by integer arithmetic anyway (`mlafix-expand-math`).

    ```mlir
    // Before
    %f = arith.extf %x : vector<2xbf16> to vector<2xf32>
    // After
    %word = vector.bitcast %x : vector<2xbf16> to vector<1xi32>
    %up = arith.shli %word, %c16 : vector<1xi32>
    %first = arith.bitcast %up : vector<1xi32> to vector<1xf32>
    %upper = arith.andi %word, %cUpperHalf : vector<1xi32>
    %second = arith.bitcast %upper : vector<1xi32> to vector<1xf32>
    %f = vector.interleave %first, %second : vector<1xf32> -> vector<2xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::vector::VectorDialect"];
}

def ReplaceDivisionsPass : Pass<"mlafix-replace-divisions", "::mlafix::KernelOp"> {
  let summary = "divisions by powers of two and by constants become products";
  let description = [{
    A division by a power of two that was f8E8M0FNU becomes the product with its inverse, which is one too: exact, for all numbers.

    A division by a constant of at most 20 significant bits, above 1, becomes a product with the constant's inverse in two parts: two operations in place of a dozen, without
    a branch, correctly rounded (N10). For dividends that a maximum keeps above what the constant allows, 2^-114 for 448, as that of a scale is. For GPUs.

    ```mlir
    // Before
    %most = arith.maximumf %largest, %c1e-10 : f32
    %scale = arith.divf %most, %c448 : f32
    // After
    %less = arith.mulf %most, %low : f32
    %scale = math.fma %most, %high, %less : f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

def ShareReciprocalsPass : Pass<"mlafix-share-reciprocals", "::mlafix::KernelOp"> {
  let summary = "packs are divided by a number through its reciprocal, exactly";
  let description = [{
    A pack that is divided by one number, to be stored as fp8, is multiplied by the number's reciprocal, and each quotient corrected by what is left of its
    dividend: three operations an element in place of a dozen, and the same bits. Packs of a block take one branch, and one reciprocal if they have one divisor. Where the divisor is in [2^-64, 2^64] and no element is beyond 2^62, quotients that fp8 can
    tell from 0 are correctly rounded (N10) before they are narrowed; elsewhere elements are divided one by one. For GPUs: a CPU divides a vector at once.

    ```mlir
    // Before
    %d = vector.broadcast %s : f32 to vector<2xf32>
    %q = arith.divf %x, %d : vector<2xf32>
    // After
    %q = scf.if %isInRange -> (vector<2xf32>) {
      %about = nvvm.rcp.approx.ftz.f %s : f32
      …
      %r = math.fma %about, %minusRest, %about : f32
      …
      %near = arith.mulf %x, %rs : vector<2xf32>
      %rest = math.fma %near, %d, %minusX : vector<2xf32>
      %exact = math.fma %rest, %minusRs, %near : vector<2xf32>
      scf.yield %exact : vector<2xf32>
    } else {
      %slow = arith.divf %x, %d : vector<2xf32>
      scf.yield %slow : vector<2xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def JoinReciprocalsPass : Pass<"mlafix-join-reciprocals", "::mlafix::KernelOp"> {
  let summary = "reciprocals of a block are checked together";
  let description = [{
    Two or more correctly rounded reciprocals of a block, each of one number, are computed in the two steps that hold for normal numbers, also one of another. One
    branch behind the last checks what all of them leave of 1, and computes them in full where one is too far off: of 0, a subnormal number, an infinity or NaN, or beyond
    2^126. What lies between them is computed again there; what needs one of them and is not between them is moved behind the branch. For GPUs.

    ```mlir
    // Before
    %a = arith.divf %one, %x : f32
    %y = arith.mulf %a, %s : f32
    %b = arith.divf %one, %y : f32
    // After
    %near = nvvm.rcp.approx.ftz.f %x : f32
    …
    %a = math.fma %near, %minusRest, %near : f32
    %y = arith.mulf %a, %s : f32
    …
    %r = scf.if %areNear -> (f32) {
      scf.yield %b : f32
    } else {
      %a1 = arith.divf %one, %x : f32
      %y1 = arith.mulf %a1, %s : f32
      %b1 = arith.divf %one, %y1 : f32
      scf.yield %b1 : f32
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def PairRowsPass : Pass<"mlafix-pair-rows", "::mlafix::KernelOp"> {
  let summary = "rows of bf16 come apart as words of two elements";
  let description = [{
    Where all that comes from a vector of bf16 is computed element by element and goes back to bf16, the order of its elements does not matter. In f32 the even
    elements then stand before the odd ones, which is how 32-bit words of two bf16 come apart and together without moving anything across lanes of a
    register: the lower elements by a shift, the upper ones by a mask. For CPUs.

    ```mlir
    // Before
    %f = arith.extf %x : vector<4xbf16> to vector<4xf32>
    // After
    %words = vector.bitcast %x : vector<4xbf16> to vector<2xi32>
    %lower = arith.shli %words, %c16 : vector<2xi32>
    %upper = arith.andi %words, %mask : vector<2xi32>
    …
    %f = vector.shuffle %even, %odd [0, 1, 2, 3] : vector<2xf32>, vector<2xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

def ScheduleGridWaitPass : Pass<"mlafix-schedule-grid-wait", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "addresses are computed, and rows prefetched, before the wait for the preceding grid";
  let description = [{
    Has a thread compute the addresses of its first loads while it waits for the preceding grid: moves that arithmetic before the wait, and an
    `exit` that needs its results, and is never taken, between them. Without that, ptxas issues the wait first of all its block of instructions; in a chain of launches
    that cost 8% of a merge of 16 tokens on an H200. Of the packs of a row, whose addresses differ by constants that loads add by themselves, it needs one.

    What is loaded after the wait, in loops by their first iteration, is also prefetched into the second-level cache before it: there, memory is coherent, so that a line which
    the preceding grid has yet to write is none the worse for having been fetched. Only the first threads of a grid prefetch their rows, as many as move
    `earlyBytes`, but at least `earlyThreads`: more than memory has time for before the preceding grid ends would be loaded twice. What every block loads, the first
    one prefetches. Of rows that are neither reduced nor stored in another width (`mlafix.plain_rows`), the first of the lanes that load a line of `earlyLineBytes` prefetches it.

    A prefetch of another device's memory, or of the host's, goes over the link and is slow, and the load then waits behind it. A kernel that prefetches has a
    parameter `local`, by which a launch says whether all that it reads lies in memory of its own device.

    ```mlir
    // Before
    nvvm.griddepcontrol wait
    %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %v = llvm.load %p : !llvm.ptr<1> -> vector<8xbf16>
    // After
    %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %address = llvm.ptrtoint %p : !llvm.ptr<1> to i64
    %prefetches = llvm.and %isLocal, %isEarly : i1
    scf.if %prefetches {
      llvm.inline_asm has_side_effects "prefetch.global.L2 [$0];", "l,~{memory}" %p : (!llvm.ptr<1>) -> ()
    }
    llvm.inline_asm has_side_effects "{… @none exit; griddepcontrol.wait; }", "l,~{memory}" %address : (i64) -> ()
    %v = llvm.load %p : !llvm.ptr<1> -> vector<8xbf16>
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def ScheduleDependentLaunchPass : Pass<"mlafix-schedule-dependent-launch", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "the next grid is let begin between loads of rows and those that need an index from memory";
  let description = [{
    Where a load's address comes of another load, the index comes first, then the loads of packs that need no memory to be found, then
    `griddepcontrol.launch_dependents`, then all else: ptxas moves no load across it. Elsewhere ptxas 13.0 issues one of these loads, waits for the index, and then issues the
    rest, so that half of a row's loads wait for one load. ptxas waits for the index ahead of that instruction, so the next grid begins then. Of a grid that prefetches
    all of its rows before the wait it begins at once, too. Where the first chunk of a merge loop is loaded ahead of it (`mlafix-load-chunks-ahead`), the next grid begins
    behind these loads: what it prefetches takes turns with them.

    ```mlir
    // Before
    nvvm.griddepcontrol launch_dependents
    scf.if %isRow {
      %a = llvm.load %p : !llvm.ptr<1> -> vector<8xbf16>
      %i = llvm.load %place : !llvm.ptr<1> -> i64
      %q = llvm.getelementptr %table[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
      %c = llvm.load %q : !llvm.ptr<1> -> vector<8xbf16>
    }
    // After
    scf.if %isPrefetched { nvvm.griddepcontrol launch_dependents }
    scf.if %isRow {
      %i = llvm.load %place : !llvm.ptr<1> -> i64
      %a = llvm.load %p : !llvm.ptr<1> -> vector<8xbf16>
      llvm.inline_asm has_side_effects "griddepcontrol.launch_dependents;", "~{memory}" : () -> ()
      %q = llvm.getelementptr %table[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
      %c = llvm.load %q : !llvm.ptr<1> -> vector<8xbf16>
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect", "::mlir::NVVM::NVVMDialect"];
}

#endif // MLAFIX_TRANSFORMS_LATE_PASSES
