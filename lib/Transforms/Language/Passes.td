//===- Passes.td - bindings, edge cases, fills -------------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LANGUAGE_PASSES
#define MLAFIX_TRANSFORMS_LANGUAGE_PASSES

include "lib/Transforms/PassOptions.td"

def SpecializePass : Pass<"mlafix-specialize", "::mlir::ModuleOp"> {
  let summary = "bind the names of kernels: dims, dtypes, bases, optional arguments";
  let description = [{
    Replaces every upper-case dim by its size and every dtype variable by its type, in the arguments, the row tiles and
    the states of each kernel. A name that no kernel has, a name without a value, and a value of the wrong kind are
    errors. A variable may be bound to a dtype of any kind if the body only moves its elements: it loads them, selects
    among them, and stores them to elements of the same variable, with 0 as the only other number. Elements of a
    variable of floats then become integers (i64), unless it is bound to f32, and their bits are moved. The types of
    states no longer say whether the states include a sink: the verifier has checked that each sink counts once.

    The name of an optional argument may be bound to `absent` or `present`. An absent argument is omitted at every
    launch. States loaded from it become identities. Its other loads become zeros if their predicate holds and `else`
    values otherwise, as at a launch that omits it. Its stores are erased, and its access becomes `"absent"`. Names that
    only absent arguments have need no value. Nor does a dim that is only the length of rows and that nothing reads: no
    other argument has this dim, and no sum, scan or iota runs along it. A present argument is no longer optional.

    `--mlafix-specialize="bindings=H=128,D=128,T=bf16,out_lse=absent"`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [ListOption<"bindings", "bindings", "std::string", "NAME=VALUE, for each compile-time name">];
}

def DefineEdgeCasesPass : Pass<"mlafix-define-edge-cases", "::mlafix::KernelOp"> {
  let summary = "give integer arithmetic, conversions and loops a result for all operands";
  let description = [{
    A kernel's semantics define, for every target, the results that upstream's ops leave undefined for some operands.
    This pass makes them explicit. It runs before the first pass that folds:

    - `arith.shli`, `shrui`, `shrsi`: a shift by the width or more gives 0; `shrsi` then gives copies of the sign. The
      amount is unsigned, so a negative amount counts as such a shift.
    - `arith.divsi`, `divui`, `floordivsi`, `ceildivsi`, `ceildivui`: a / 0 is a, and the smallest integer over -1 wraps around; `remsi`, `remui`: a % 0 is 0.
    - `arith.fptosi`, `fptoui`: saturate; NaN becomes 0.
    - `arith.minnumf`, `maxnumf`: -0.0 is less than 0.0.
    - `math.sin`, `cos`: NaN for magnitudes above 2^23, which targets do not compute.
    - `arith.index_cast` of an index to a narrower integer keeps the low bits, even if it is cast back.
    - `scf.for`: the number of iterations is exact for all bounds, and 0 for an empty range. A loop whose step is not 1,
      or whose index has fewer than 64 bits, counts its iterations instead, so that nothing wraps. A constant step below
      1 is an error. A step below 1 that is known only at run time gives no iterations.
    - Overflow flags, `exact` and fast-math flags are removed: nothing checks their promises, and N9 and N10 hold for
      every operation of a kernel.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def FillOutputsPass : Pass<"mlafix-fill-outputs", "::mlafix::KernelOp"> {
  let summary = "write the fill where no store writes an output";
  let description = [{
    For an output with `mlafix.fill`, the branches around the stores yield a boolean: true if the row has stored to it.
    A store at the row's end writes the fill if it is false. So only the remaining rows cost anything, and an output
    that is always stored costs nothing. The grid must be dense. All stores must be outside of loops, at the same
    indices of the grid, which must run over just the output's rows (for stores of elements, its elements). Other
    kernels are errors. The attribute is removed.

    ```mlir
    // Before, with {mlafix.fill = 0.0 : f32} on %out
    mlafix.store %v, %out[%t] if %p : f32, !vec
    // After
    mlafix.store %v, %out[%t] if %p : f32, !vec
    %left = arith.xori %p, %true : i1
    mlafix.store %zero, %out[%t] if %left : f32, !vec
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // MLAFIX_TRANSFORMS_LANGUAGE_PASSES
