//===- PrintOp.td - text that rows print ------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PRINT_OP
#define MLAFIX_PRINT_OP

include "dialect/MlafixOpBase.td"

def Mlafix_PrintOp : Mlafix_Op<"print", [MemoryEffects<[MemWrite]>]> {
  let summary = "text that a row prints where a launch is watched";
  let description = [{
    Each `{}` in the text stands for one operand, in order: a scalar, a row, or a state, of which the lse is printed. A launch that is watched (docs/Proofs.md)
    shows the text with the row's indices, and `?` for values that it does not know. If a row has more than 8 elements,
    the launch shows the first 4 and the last 2, the number of elements that are NaN or infinite, and the first of
    these. Compiled code prints nothing, since `mlafix-guard-bounds` removes the op.

    ```mlir
    mlafix.print "row {}: {} {}", %t, %row, %s : index, tensor<?xf32, #mlafix.dim<"D">>, !mlafix.state<"D", e>
    ```
  }];
  let arguments = (ins StrAttr:$text, Variadic<AnyTypeOf<[Mlafix_Value, Mlafix_StateType]>>:$values);
  let assemblyFormat = "$text (`,` $values^ `:` type($values))? attr-dict";
  let hasVerifier = 1;
}

#endif // MLAFIX_PRINT_OP
