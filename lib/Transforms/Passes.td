//===- Passes.td - passes from mlafix to mlafix -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_PASSES
#define MLAFIX_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

// What every pass takes whose decisions depend on the target.
class TargetOption : Option<"target", "target", "std::string", "\"\"", "a name that mlafix-opt --list-targets prints">;
class MachineOption : ListOption<"machine", "machine", "std::string", "NAME=VALUE: numbers to replace of what lib/Machine/MachineModel.def says of the target">;

def SpecializePass : Pass<"mlafix-specialize", "::mlir::ModuleOp"> {
  let summary = "bind the names of kernels: dims, dtypes, bases, optional arguments";
  let description = [{
    Replaces every upper-case dim by its size and every dtype variable by its type, in the arguments, the row tiles and the states of each
    kernel. A name that no kernel has, a name left unbound and a value of the wrong kind are errors.

    The name of an optional argument may be bound to `absent` or `present`. An absent one is left out at every launch: states loaded
    from it become identities, its other loads zeros where their predicate holds and `else` values elsewhere, as at a launch that leaves it out; its stores go, its access
    becomes `"absent"`; names that nothing else has need no value, nor does a dim of rows whose length nothing reads: no other argument has it, and no sum
    counts its elements. A present one is optional no more.

    `--mlafix-specialize="bindings=H=128,D=128,T=bf16,out_lse=absent"`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [ListOption<"bindings", "bindings", "std::string", "NAME=VALUE, for each compile-time name">];
}

def MakeTotalPass : Pass<"mlafix-make-total", "::mlafix::KernelOp"> {
  let summary = "give integer arithmetic, conversions and loops a result for all operands";
  let description = [{
    What upstream's ops leave undefined for some operands is defined in a kernel, and the same on every target. This pass comes before the first one that
    folds, and writes it out:

    - `arith.shli`, `shrui`, `shrsi`: a shift by the width or more leaves 0, an arithmetic one copies of the sign. The amount is taken as unsigned, so a
      negative one is such an amount.
    - `arith.divsi`, `divui`, `floordivsi`, `ceildivsi`, `ceildivui`: a / 0 is a, and the smallest integer over -1 wraps around; `remsi`, `remui`: a % 0 is 0.
    - `arith.fptosi`, `fptoui`: saturate; NaN becomes 0.
    - `arith.index_cast` of an index to a narrower integer keeps the low bits, also where it is cast back.
    - `scf.for`: the number of iterations is exact for all bounds, 0 where the range is empty. A loop whose step is not 1, or whose
      index has fewer than 64 bits, counts its iterations instead, so that nothing wraps. A constant step below 1 is an error, one that is known only at run time means no iteration.
    - Overflow flags, `exact` and fast-math flags go: nothing checks what they promise, and N9 and N10 hold for every operation of a kernel.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def ChunkMergesPass : Pass<"mlafix-chunk-merges", "::mlafix::KernelOp"> {
  let summary = "running merges become merges of chunks, which lane groups may share";
  let description = [{
    A loop that does nothing but merge states into the one it carries, as often as a launch knows beforehand, becomes `mlafix.merge_loop`: a chunk of `chunkIterations` iterations is merged by
    itself, with one common maximum, and then into the running state. The states of iterations past the end are the identity, so there is no loop for what is left, and chunks may be
    computed in any order and by any lanes. A loop of at most `unchunkedIterations` known iterations, which load `unchunkedBytes` at most, is left to `mlafix-unroll-loops`: a warp holds their rows at once. For GPUs.

    ```mlir
    // Before
    %all = scf.for %k = %c0 to %s step %c1 iter_args(%acc = %none) -> (!mlafix.state<"D", e>) {
      %part = mlafix.load_state %partial[%k, %h] lse %partial_lse[%k, %h] : …
      %sum = mlafix.merge %acc, %part : !mlafix.state<"D", e>
      scf.yield %sum : !mlafix.state<"D", e>
    }
    // After, with machine=chunkIterations=2
    %all = mlafix.merge_loop %k = %c0 to %s step 2 init(%none) : !mlafix.state<"D", e> {
      %left = arith.subi %s, %k : index
      %p0 = mlafix.load_state %partial[%k, %h] lse %partial_lse[%k, %h] if %exists0 : …
      %p1 = mlafix.load_state %partial[%k1, %h] lse %partial_lse[%k1, %h] if %exists1 : …
      %chunk = mlafix.merge %p0, %p1 : !mlafix.state<"D", e>
      mlafix.yield %chunk : !mlafix.state<"D", e>
    }
    ```
  }];
  let options = [TargetOption<>, MachineOption<>];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def UnrollLoopsPass : Pass<"mlafix-unroll-loops", "::mlafix::KernelOp"> {
  let summary = "unroll the loops over rows, so that several rows are in flight";
  let description = [{
    On a GPU, a loop of at most 8 known iterations that reads rows is unrolled altogether, a longer one or one of unknown length four times. The merges of a
    running state then flatten into one (canonicalise), which needs one common maximum instead of four. A CPU reads ahead by itself.
    What is divided by four is the exact number of iterations, which is 0 for a range that is empty by any number of steps.
  }];
  let options = [TargetOption<>, MachineOption<>];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def SkipCopiesPass : Pass<"mlafix-skip-copies", "::mlafix::KernelOp"> {
  let summary = "leave alone the rows that would be stored as they were";
  let description = [{
    `store_state (merge %a, …, %s)` writes `%s` back to where it was read from when the kernel is called in place and the predicates of
    all other operands are false. Branches on that, known from the predicates and two pairs of pointers, around the loads and the store: such a row's payload
    is neither read nor written. Its lse is read all the same: a row that holds nothing becomes the identity (N3), one whose lse is NaN becomes NaN (N6).
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def DelayReadsPass : Pass<"mlafix-delay-reads", "::mlafix::KernelOp"> {
  let summary = "read a state's row once its lse is known, where the merge of two is stored in place";
  let description = [{
    Rows that are about to be replaced are better not read all at once (docs/Rationale.md has what was measured). Of a merge of two states that is stored where one
    was loaded from, that one's row is loaded in one of two places: with all else where the call is out of place or small, else behind its lse, and not at all if
    that says that it is empty. For GPUs.
  }];
  let options = [TargetOption<>, MachineOption<>];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def LowerStatesPass : Pass<"mlafix-lower-states", "::mlafix::KernelOp"> {
  let summary = "states become (maximum, sum, accumulator)";
  let description = [{
    A state becomes three values: the largest lse m (f32; -inf exactly when the state is empty), the sum s of the weights relative to m (f32),
    and the unnormalised accumulator (a row tile of f32). `merge` rescales its operands to the common maximum, with weights 2^((m_i - m) log2 b); a dead payload
    is replaced by -0.0, the neutral element of addition, before it is multiplied (N4, N5), and `store_state` divides once.
    The formulas are those of the online softmax (Milakov and Gimelshein, 2018). In a merge of two in base e, the power of two is multiplied by
    1 + what rounding took from its exponent, so that an error of the weights does not grow with the gap between two lse (N10).

    `store_state` divides by a sum of weights, which is at least 1 and at most the number of states: `arcp` on this division, and `afn` on the logarithm of the sum,
    say that an approximation which holds for such numbers will do. No other operation carries such a flag: a kernel's own divisions are correctly rounded.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def PlanLayoutPass : Pass<"mlafix-plan-layout", "::mlir::ModuleOp"> {
  let summary = "choose variants and the layout of each";
  let description = [{
    Clones every kernel once per variant of the target, fast ones first, and writes on each clone its guards (what the launch must check) and one
    `#mlafix.layout`. A GPU gets a variant of packs as wide as 16 bytes (`fast`), guarded by the alignment of the tensors it moves so and by a row
    count that fits 32-bit indices; before it the same for tensors whose rows follow each other without gaps and whose scalars lie alike, which needs few strides, apart
    (`dense`) and, where outputs may be inputs, in place (`place`); and one without such guards (`any`). A CPU, where a row has one lane, gets a variant that
    writes past the caches, for aligned outputs that are larger than they and no inputs, one that computes the scalars of 16 rows at once, for outputs that are no
    inputs, if there is enough to compute, and one for all other calls. Also records the target
    and the kernel's signature on the module.
  }];
  let options = [
    TargetOption<>, MachineOption<>,
    Option<"variant", "variant", "std::string", "\"\"", "keep this variant alone (dense, place, fast, any; on a CPU streamed, apart, any): for a look at its code">];
}

def DistributePass : Pass<"mlafix-distribute", "::mlafix::KernelOp"> {
  let summary = "one row's program becomes a thread's program";
  let description = [{
    On a GPU, `forall` becomes the arithmetic from thread and block indices to row indices, `ragged_forall` a scan of the predicate and a loop over the
    selected rows, with the scalars that depend on nothing but indices in a pass of their own; each row tile becomes one vector per pack of the layout, row reductions become shuffles (and shared memory across warps), scalars are stored by
    one lane. Where rows may be left alone, the halves of the grid take turns. On a CPU both become loops over the range `[begin, end)` that two new arguments give; in a layout of several rows, the
    scalars of so many rows along the outermost extent are computed first, as vectors, and kept in buffers until these rows are moved. Records the launch geometry on the kernel.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect", "::mlir::gpu::GPUDialect"];
}

def HoistLoadsPass : Pass<"mlafix-hoist-loads", "::mlafix::KernelOp"> {
  let summary = "issue loads before the arithmetic that could delay them";
  let description = [{
    Moves every load of a block, with the address computations it needs, before the first arithmetic that is none of these, as long as no store lies in between;
    loads without a predicate go first, since the branch around a predicated one ends what the assembler schedules together. A row's
    loads are then all in flight before the first value of any of them is waited for.
  }];
}

#endif // MLAFIX_TRANSFORMS_PASSES
