//===- MlafixAttrs.td - attributes -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ATTRS
#define MLAFIX_ATTRS

include "dialect/MlafixDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Mlafix_Attr<string name, string attrMnemonic> : AttrDef<Mlafix_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Mlafix_DimAttr : Mlafix_Attr<"Dim", "dim"> {
  let summary = "a named dim, or the size it was bound to";
  let description = [{
    Marks a rank-1 tensor as a row tile, and says which dim runs along it: a name in a generic source, a number once
    `mlafix-specialize` has bound the name.

    ```mlir
    tensor<?xf32, #mlafix.dim<"D">>
    tensor<128xf32, #mlafix.dim<128>>
    ```
  }];
  let parameters = (ins "::mlir::Attribute":$value);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static DimAttr get(::mlir::MLIRContext *context, ::llvm::StringRef name);
    static DimAttr get(::mlir::MLIRContext *context, int64_t size);
    /// Whether the dim has been bound to a number.
    bool isBound() const;
    /// The number, or ShapedType::kDynamic while unbound.
    int64_t getSize() const;
    /// The name; empty once bound.
    ::llvm::StringRef getName() const;
    /// `"D"` or `128`, as diagnostics spell it.
    std::string str() const;
  }];
  let skipDefaultBuilders = 1;
}

def Mlafix_BaseAttr : Mlafix_Attr<"Base", "base"> {
  let summary = "the base of a log-sum-exp: e, 2, or the name that one of them is bound to (N8)";
  let description = [{
    ```mlir
    #mlafix.base<e>
    #mlafix.base<2>
    #mlafix.base<"B">
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$value);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static BaseAttr get(::mlir::MLIRContext *context, LogBase base);
    static BaseAttr get(::mlir::MLIRContext *context, ::llvm::StringRef value);
    /// The base, or none while it is a name.
    ::std::optional<LogBase> getBase() const;
    /// The name; empty once bound.
    ::llvm::StringRef getName() const;
  }];
  let skipDefaultBuilders = 1;
}

def Mlafix_LayoutAttr : Mlafix_Attr<"Layout", "layout"> {
  let summary = "how a row is distributed over lanes: written by `mlafix-plan-layout`";
  let description = [{
    At most `pack` consecutive elements are moved by one access; `lanes` threads share a row, and lane `l` holds the elements
    `[(p * lanes + l) * pack, … + pack)` of it for each of its packs `p`, of which a lane holds at most `packs`; a thread block works on `rows` rows.
    Rows along different dims have packs of their own: of as many elements as the largest power of two that divides `pack` and the dim's size, so
    that no pack straddles a row's end. Lanes that synchronise (wait for each other or exchange values) are a power of
    two.

    With `groups` above 1 the launch chooses how many groups of lanes, at most so many, share the chunks of a row's
    merge loops; lanes of a row then do not synchronise, and may be in several blocks.

    ```mlir
    #mlafix.layout<lanes = 16, packs = 1, pack = 8, rows = 8>
    #mlafix.layout<lanes = 128, packs = 1, pack = 4, rows = 1, groups = 16>
    ```
  }];
  let parameters = (ins "int64_t":$lanes, "int64_t":$packs, "int64_t":$pack, "int64_t":$rows, DefaultValuedParameter<"int64_t", "1">:$groups);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Threads of a block, at most.
    int64_t getThreads() const { return isGrouped() ? kLeastGrouped * getGroups() : getLanes() * getRows(); }
    /// Whether the launch chooses the number of lane groups of a row.
    bool isGrouped() const { return getGroups() > 1; }
    /// Threads of a group within a block, at least: a warp.
    static constexpr int64_t kLeastGrouped = 32;
    /// Elements of a pack of a row of `size` elements.
    int64_t packFor(int64_t size) const { return ::std::min(getPack(), size & -size); }
    /// Packs a lane holds of it.
    int64_t packsFor(int64_t size) const {
      int64_t step = getLanes() * packFor(size);
      return (size + step - 1) / step;
    }
  }];
}

def Mlafix_ReduceKind : I32EnumAttr<"ReduceKind", "how a row is reduced", [
    I32EnumAttrCase<"add", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>]> {
  let cppNamespace = "::mlafix";
  let genSpecializedAttr = 0;
}
def Mlafix_ReduceKindAttr : EnumAttr<Mlafix_Dialect, Mlafix_ReduceKind, "reduce_kind"> {
  let assemblyFormat = "$value";
}

#endif // MLAFIX_ATTRS
