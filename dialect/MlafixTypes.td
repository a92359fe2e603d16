//===- MlafixTypes.td - types -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TYPES
#define MLAFIX_TYPES

include "dialect/MlafixAttrs.td"

def Mlafix_StateType : TypeDef<Mlafix_Dialect, "State"> {
  let mnemonic = "state";
  let summary = "a partial attention state: an element of the monoid";
  let description = [{
    A normalised output row of `D` elements, and the log-sum-exp of the scores that it was computed from. The base is e,
    2, or a name that `mlafix-specialize` binds to one of them (N8). While being merged it is a triple (running maximum,
    sum, unnormalised accumulator), all f32 (N7), so a chain of merges normalises once, at the store.

    `sink` says that an attention sink may be among the states that were merged. An attention sink is a logit beside the
    scores, usually without a value (its payload is zeros). In a type without `sink`, no merged state is a sink. A merge
    takes at most one operand with `sink` in its type, so that a sink counts once. Only verifiers read `sink`, so
    `mlafix-specialize` removes it from the types.

    ```mlir
    !mlafix.state<"D", e>
    !mlafix.state<128, 2>
    !mlafix.state<"D", "B">
    !mlafix.state<"D", e, sink>
    ```
  }];
  let parameters = (ins "DimAttr":$dim, "BaseAttr":$base, "bool":$sink);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    static StateType get(::mlir::MLIRContext *context, DimAttr dim, BaseAttr base) {
      return get(context, dim, base, /*sink=*/false);
    }
    /// This type with another value of `sink`, which says whether the states
    /// may include a sink.
    StateType withSink(bool sink) const { return get(getContext(), getDim(), getBase(), sink); }
    /// The type of the payload, a row tile.
    ::mlir::RankedTensorType getTileType() const;
  }];
}

// A rank-1 tensor whose encoding is a #mlafix.dim.
def Mlafix_RowTile : Type<CPred<"::mlafix::isRowTile($_self)">, "row tile", "::mlir::RankedTensorType">;
def Mlafix_Scalar : AnyTypeOf<[F32, I1, I8, I32, I64, Index], "scalar">;
def Mlafix_Value : AnyTypeOf<[Mlafix_RowTile, Mlafix_Scalar], "row tile or scalar">;

#endif // MLAFIX_TYPES
