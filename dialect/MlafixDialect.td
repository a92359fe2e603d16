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

    Partial attention states `(out, lse)` form a commutative monoid whose identity is `(+0.0, -inf)`. The ops below are its
    vocabulary, and they keep this contract:

    | | |
    |---|---|
    | N1 | the identity is `out = +0.0`, `lse = -inf`, exactly |
    | N2 | `lse = +inf` on input means empty, as `-inf` does |
    | N3 | both sides empty: the result is the identity, never NaN, never what the buffer held before |
    | N4 | one side empty: the result is the other side, bit for bit (after conversion to the output type) |
    | N5 | a term whose weight is zero contributes nothing whatever its payload holds; an excluded row is not read |
    | N6 | NaN in a live `lse` gives NaN out and NaN lse |
    | N7 | weights and accumulation are f32; floats in memory are bf16, f16 or f32 |
    | N8 | the base of the lse is part of the state's type; mixing bases is an error |
    | N9 | a row's bits depend on that row's inputs only |
    | N10 | error against an f64 reference: at most 1 ulp for bf16 and f16, relative 4e-6 for f32 |
    | N11 | outputs may alias inputs exactly: in-place is legal |
    | N12 | any strides on the row dims, stride 1 on the payload; any H >= 1, D >= 1, N >= 0 |
    | N13 | offsets are 64-bit |
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::tensor::TensorDialect"
  ];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 0;
}

#endif // MLAFIX_DIALECT
