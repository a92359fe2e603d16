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
    A running merge scales its result whenever an lse is larger than all before. An infinity or NaN of a payload
    survives each of these factors, although the weight of its state in the whole may be zero (N5). So if an element of
    the result is not finite, a branch merges the states once more. It weighs each against the largest lse, which is
    known by then, and scales nothing. All other elements stay as they are; a row of finite elements takes one
    comparison.

    This applies to loops that merge into the one state they carry, to loops in such loops, and to merges of their
    results, wherever the payload is used. A loop stays as it is if it computes its lses from rows, stores, or carries
    other values too. So does a loop that `mlafix-unroll-loops` will unroll completely: its merges become one. So does a
    single loop whose states `mlafix-chunk-merges` weighs only once anyway.

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
    On a GPU, a loop of at most 8 known iterations that reads rows is unrolled completely. A longer loop, or one of
    unknown length, is unrolled four times. It is unrolled eight times if each iteration reduces a row over lanes, unless
    it keeps 8 rows and states or more (`crowdedRows`). The merges of a running state then flatten into one
    (canonicalise), which needs one common maximum in place of one for each. On a CPU, loops stay as they are, since a
    CPU reads ahead by itself. The number of iterations, which is divided by the factor, is computed exactly. For an
    empty range it is 0, whatever the step.

    A longer loop that stores results computed from its rows is not unrolled: no load moves before a store
    (`mlafix-hoist-loads`), and each store waits for the rows of its iteration.

    After the unrolled loop, fewer iterations than the factor remain. If the loop only merges states into the state it
    carries, and reads rows of at most 1024 bytes per iteration, the remaining iterations become code without a loop.
    This code loads all their states at once, each if its iteration exists, and then merges them one after the other.
    The merges are those of the loop, so the results have the same bits.
  }];
  let options = [TargetOption<>, MachineOption<>];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def SkipCopiesPass : Pass<"mlafix-skip-copies", "::mlafix::KernelOp"> {
  let summary = "neither read nor write rows that a merge in place leaves unchanged";
  let description = [{
    `store_state (merge %a, …, %s)` writes `%s` back to where it was read from if the kernel is called in place and the
    predicates of all other operands are false. The pass builds this condition, which compares two pairs of pointers and
    tests the predicates. It puts the loads and the store into a branch, so such a row's payload is neither read nor
    written. Its lse is still read: an empty row becomes the identity (N3), and a row whose lse is NaN becomes NaN (N6).
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def LoadOneHotPass : Pass<"mlafix-load-one-hot", "::mlafix::KernelOp"> {
  let summary = "a sum that takes one element of a row loads that element";
  let description = [{
    `sum(where(iota("V") == label, row, 0))` selects one element of a row: the label's, or 0 if the label is outside of
    the row. If the row is loaded, or computed elementwise from loaded rows, this pass loads and computes only that
    element. This replaces a comparison, a select and an addition per element, and a reduction over lanes. A sum of
    floats adds 0 to the element, so that -0 becomes 0 as in the sum. The pass treats a maximum of floats with -inf in
    place of 0 in the same way; it gives the element itself. The pass applies only if no launch may pass the row's
    tensor as an output, too, since an access with another index than the row's would forbid such calls. So the row's
    memory does not change either.

    ```mlir
    // Before
    %here = arith.cmpi eq, %indices, %labels : tensor<512xi32, #mlafix.dim<512>>
    %one = arith.select %here, %row, %zeros : tensor<512xi1, #mlafix.dim<512>>, tensor<512xf32, #mlafix.dim<512>>
    %sum = mlafix.reduce add %one : tensor<512xf32, #mlafix.dim<512>>
    // After
    %inside = arith.cmpi ult, %label, %c512 : i32
    %element = mlafix.load %x[%t, %i] if %inside : memref<?x512xbf16, strided<[?, 1], offset: ?>> -> f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def LowerStatesPass : Pass<"mlafix-lower-states", "::mlafix::KernelOp"> {
  let summary = "states become (maximum, sum, accumulator)";
  let description = [{
    A state becomes three values: the largest lse m (f32; -inf exactly when the state is empty), the sum s of the
    weights relative to m (f32), and the unnormalised accumulator (a row tile of f32). `merge` rescales its operands to
    the common maximum, with weights 2^((m_i - m) log2 b). A dead payload is replaced by -0.0, the neutral element of
    addition, before it is multiplied (N4, N5). `store_state` divides once. The formulas are those of the online softmax
    (Milakov and Gimelshein, 2018). In a merge of two in base e, the power of two is multiplied by 1 plus the rounding
    error of its exponent. So an error of the weights does not grow with the gap between two lse (N10).

    `store_state` divides by a sum of weights, which is between 1 and the number of states. `arcp` on this division, and
    `afn` on the logarithm of the sum, permit an approximation that is accurate for such numbers. `afn` also marks a
    row's exponentials, exp(x - max(x)) for its elements x, if only their sum is used. No term overflows, and the
    largest term is 1, so subnormal terms do not change the sum. The rounding of the exponents adds an error below the
    one that a sum of n numbers may have, log2(n) 2^-24. No other operation has such a flag: a kernel's own divisions
    are correctly rounded.

    `mlafix.arg_reduce` becomes two reductions: one finds the extreme of the row, the other the least index at which it,
    or a NaN, occurs. A comparison with the float next to the extreme detects both. On a GPU, for rows of at least 2048
    elements with at most 32 per lane, only lanes whose own extreme equals that of the row search for the index.
    `mlafix.top_k` becomes one reduction of i64 keys per element found: the high half of a key is the element, the low
    half its inverted index, so that a lower index gives a greater key. Keys are i32 if elements are loaded from at most
    16 bits and an index fits the bits of f32 that these lack. An addition to all keys makes those that have been found
    less than all others. On a GPU, other rows of up to 256 elements take two reductions per element, as
    `mlafix.arg_reduce` does, with found elements replaced by the least value. A reduction of booleans becomes one of
    i32.
  }];
  let options = [TargetOption<>, MachineOption<>];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

#endif // MLAFIX_TRANSFORMS_STATES_PASSES
