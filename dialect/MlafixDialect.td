//===- MlafixDialect.td - the dialect -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT
#define MLAFIX_DIALECT

include "mlir/IR/OpBase.td"

def Mlafix_Dialect : Dialect {
  let name = "mlafix";
  let cppNamespace = "::mlafix";
  let summary = "Row kernels over partial attention states";
  let description = [{
    A kernel's body describes **one row**; the grid is the set of rows. Payloads are *states*,
    `!mlafix.state<"D", e>`, or *row tiles*, `tensor<?xf32, #mlafix.dim<"D">>`: upstream tensors whose encoding names the
    dim, so that `arith`, `math`, `scf` and `arith.select` with a scalar condition apply to them as they are and one source serves
    every D and every dtype.

    Partial attention states `(out, lse)` form a commutative monoid whose identity is `(+0.0, -inf)`. The ops below have
    this contract:

    | | |
    |---|---|
    | N1 | the identity is `out = +0.0`, `lse = -inf`, exactly |
    | N2 | `lse = +inf` on input means empty, as `-inf` does |
    | N3 | both sides empty: the result is the identity, never NaN, never what the buffer held before |
    | N4 | one side empty: the result is the other side, bit for bit (after conversion to the output type) |
    | N5 | a term whose weight is zero contributes nothing whatever its payload holds; an excluded row is not read |
    | N6 | NaN in a live `lse` gives NaN out and NaN lse |
    | N7 | weights and accumulation are f32; narrower floats in memory are widened when loaded, and rounded to the nearest, ties to even, when stored; f8e4m3fn and f8e5m2 saturate and keep NaN |
    | N8 | the base of the lse is part of the state's type; mixing bases is an error |
    | N9 | a row's bits depend on that row's inputs only |
    | N10 | error against an f64 reference: at most 1 ulp for bf16 and f16, relative 4e-6 for f32 |
    | N11 | outputs may alias inputs exactly: in-place is legal |
    | N12 | any strides on the row dims, stride 1 on the payload; any H >= 1, D >= 1, N >= 0 |
    | N13 | offsets are 64-bit |

    N7 and N10 at the ends of f32:

    - A weight below 2^-126 of the largest is rounded to a multiple of 2^-149, and to 0 below half of that.
    - Merging k states adds up k payloads before it divides by the sum of the weights: payloads of 2^128 / k and more may overflow.
    - The error of f32 is relative to the sum of the magnitudes of what is added up, where terms cancel; below 2^-126 it is at most 2^-126. A term that a merge of
      three states or more in base e weighs e^-g may be off by 1.6e-7 g of itself, from g = 25 on: by 1.4e-5 where its weight is 2^-126. An lse is off by at most 4e-6 of itself, or 4e-6 where it is smaller than 1.
    - Outside of states, `arith.divf` and `math.sqrt` are correctly rounded, and the other functions of `math` are off by at most N10, over their whole range; subnormal
      numbers are numbers like any other.

    N5 in chains: the weight is that in the whole, of all states that loops, and merges of what they give, put together.
    Infinities and NaN of a state whose weight there is zero reach no result, in whatever order the states come. An
    element that a step added one to is merged again, each state weighed once against the largest lse. That may round it
    otherwise than with a finite payload, within N10; other elements keep their bits. Three kinds of merges weigh states
    step by step. There, such a payload counts as soon as a step gives it a weight: loops that compute an lse from rows,
    loops that store or that carry more than one state, and merges in a branch.
    `mlafix-repair-merges` says so in a remark.

    N11 applies to two arguments of one shape and dtype, one written and one read, if every row reads only the element
    or row that it writes, and reads it first. Which ones these are is computed: `aliases` in a kernel's signature has
    them (`mlafix-opt --emit=signature`, `kernel.signature["aliases"]`, [UnitFormat.md](UnitFormat.md)). A call that
    passes one tensor for others is refused.

    Of upstream dialects a kernel may use, on scalars and rows:

    - `arith`, except `arith.remf`, which CPUs do not have. Values of bf16, f16 and fp8 are only moved and converted:
      arithmetic is in f32.
    - of `math`: `exp`, `exp2`, `log`, `log2`, `sqrt`, `rsqrt`, `sin`, `cos`, `erf`, `tanh`, `fma`, `absf`, `absi`, `floor`, `ceil`, `roundeven`, `trunc`, `copysign`, `ctlz`
      and `ctpop`. Others are an error, unless they fold.

    In a kernel, these ops have a result for all operands, the same on every target: `mlafix-define-edge-cases` in
    [Passes.md](Passes.md) says which.

    Ops that only passes create, for the program of one GPU thread, are in the dialect `mlafix_thread`
    ([ThreadDialect.md](ThreadDialect.md)).
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::tensor::TensorDialect"
  ];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 0;
}

#endif // MLAFIX_DIALECT
