//===- Passes.td - passes on states and their merges -------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_STATES_PASSES
#define MLAFIX_TRANSFORMS_STATES_PASSES

include "lib/Transforms/PassOptions.td"

def RepairMergesPass : Pass<"mlafix-repair-merges", "::mlafix::KernelOp"> {
  let summary = "merge again what is not finite, each state weighed once";
  let description = [{
    A running merge scales what it has merged whenever an lse is larger than all before. An infinity or NaN of a payload survives each of these factors, although the
    weight of its state in the whole may be zero (N5). So where an element of the result is not finite, a branch merges the states once more, each weighed against the largest lse, which is known by then, and nothing is scaled. All other
    elements stay as they are; a row of finite elements takes one comparison.

    So it is for loops that merge into the one state they carry, for loops in such loops, and for merges of what they give, wherever the payload is used. A loop that computes its lses
    from rows, that stores, or that carries other values too is left as it is, and so is a loop that `mlafix-unroll-loops` will unroll altogether: its merges become one.

    ```mlir
    // Before
    %all = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %none) -> (!mlafix.state<"D", e>) {
      %part = mlafix.load_state %x[%k, %h] lse %lse[%h, %k] : …
      %sum = mlafix.merge %acc, %part : !mlafix.state<"D", e>
      scf.yield %sum : !mlafix.state<"D", e>
    }
    // After, behind the loop
    %bad = mlafix.has_nonfinite %all : !mlafix.state<"D", e>
    %whole = scf.if %bad -> (!mlafix.state<"D", e>) {
      %max = mlafix.max_of %all : !mlafix.state<"D", e>
      %first = mlafix.reference %max : !mlafix.state<"D", e>
      %again = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %first) -> (!mlafix.state<"D", e>) {
        %part = mlafix.load_state %x[%k, %h] lse %lse[%h, %k] : …
        %sum = mlafix.merge to_first %acc, %part : !mlafix.state<"D", e>
        scf.yield %sum : !mlafix.state<"D", e>
      }
      %repaired = mlafix.repair %all, %again : !mlafix.state<"D", e>
      scf.yield %repaired : !mlafix.state<"D", e>
    } else {
      scf.yield %all : !mlafix.state<"D", e>
    }
    ```
  }];
  let options = [TargetOption<>, MachineOption<>];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect"];
}

def UnrollLoopsPass : Pass<"mlafix-unroll-loops", "::mlafix::KernelOp"> {
  let summary = "unroll the loops over rows, so that several rows are in flight";
  let description = [{
    On a GPU, a loop of at most 8 known iterations that reads rows is unrolled altogether, a longer one or one of unknown length four times. The merges of a
    running state then flatten into one (canonicalise), which needs one common maximum instead of four. A CPU reads ahead by itself.
    What is divided by four is the exact number of iterations, which is 0 for a range that is empty by any number of steps.

    Up to three iterations are left. Of a loop that does nothing but merge states into the one it carries, of rows of at most 1024 bytes an iteration, they are no loop: they load all
    their states at once, each if there is such an iteration, and then merge them one after the other. The merges are those of the loop, and so are the results, to the bit.
  }];
  let options = [TargetOption<>, MachineOption<>];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def SkipCopiesPass : Pass<"mlafix-skip-copies", "::mlafix::KernelOp"> {
  let summary = "neither read nor write rows that a merge in place leaves unchanged";
  let description = [{
    `store_state (merge %a, …, %s)` writes `%s` back to where it was read from when the kernel is called in place and the predicates of
    all other operands are false. Branches on that, known from the predicates and two pairs of pointers, around the loads and the store: such a row's payload
    is neither read nor written. Its lse is read all the same: a row that holds nothing becomes the identity (N3), one whose lse is NaN becomes NaN (N6).
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
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

    `mlafix.arg_reduce` becomes two reductions: of the row, and of the indices at which the extreme or a NaN is, to the least of them.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect"];
}

#endif // MLAFIX_TRANSFORMS_STATES_PASSES
