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
  let summary = "a named dim, perhaps with a bound, or the size it was bound to; or a product of two";
  let description = [{
    Marks a rank-1 tensor as a row tile, and names the dim along it. In a generic source this is a name;
    `mlafix-specialize` replaces the name by a number.

    A product `G x K` is one dim of G * K elements, in G groups of K. A row along it has G * K elements. `G per K` is a
    row of one element for each of these groups, G elements. `mlafix-group-rows` gives this type to rows along G that
    are combined with rows along the product, so that each lane has the elements of its groups.

    `"b" most 1024` is a dim whose size is known at launch, with the bound that the kernel gives it (`most`). A row
    along it has the type of 1024 elements. Only the elements below the dim's size exist: the others are neither read
    nor written, and reductions ignore them. `by 4` states that the size is a multiple of 4 in each launch of this code
    version. A guard of the code version ensures this (`multiple`), and rows are moved in packs of 4.

    ```mlir
    tensor<?xf32, #mlafix.dim<"D">>
    tensor<1024xf32, #mlafix.dim<"b" most 1024>>
    tensor<1024xf32, #mlafix.dim<"b" most 1024 by 4>>
    tensor<128xf32, #mlafix.dim<128>>
    tensor<?xf32, #mlafix.dim<"G" x 128>>
    tensor<512xf32, #mlafix.dim<4 x 128>>
    tensor<4xf32, #mlafix.dim<4 per 128>>
    ```
  }];
  let parameters = (ins "::mlir::Attribute":$value, "::mlir::Attribute":$inner, "bool":$perGroup, "::mlir::IntegerAttr":$most,
                        DefaultValuedParameter<"int64_t", "1">:$multiple);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static DimAttr get(::mlir::MLIRContext *context, ::llvm::StringRef name);
    static DimAttr get(::mlir::MLIRContext *context, int64_t size);
    /// A dim whose size only the launch knows: at most `most`, and a multiple of
    /// `multiple`.
    static DimAttr getBounded(::mlir::MLIRContext *context, ::llvm::StringRef name, int64_t most, int64_t multiple = 1);
    /// The product of two dims, neither of which is a product.
    static DimAttr getProduct(DimAttr groups, DimAttr group);
    /// True if the dim is a product, so that its rows consist of groups.
    bool isProduct() const { return getInner() && !getPerGroup(); }
    /// True if rows have one element for each group of a product.
    bool isPerGroup() const { return getPerGroup(); }
    /// The dim that counts the groups: G of a product `G x K`, and of the dim
    /// `G per K`.
    DimAttr getGroups() const;
    /// The dim of one group: K of `G x K` or `G per K`.
    DimAttr getGroup() const;
    /// The dim `G per K` of rows that have one element for each group of this
    /// product `G x K`.
    DimAttr getEachGroup() const;
    /// True if the dim has been bound to a number.
    bool isBound() const;
    /// True if the dim has a bound, and only the launch knows its size.
    bool isBounded() const { return bool(getMost()); }
    /// The number of elements in the type of a row along this dim: the bound if
    /// the dim has one, or ShapedType::kDynamic while a name is unbound.
    int64_t getSize() const;
    /// The name; empty if the dim is bound to a number or has two factors.
    ::llvm::StringRef getName() const;
    /// The unbound names of the dim or of its factors.
    ::llvm::SmallVector<::llvm::StringRef, 2> getNames() const;
    /// This dim with a size for each name that `sizeOf` knows.
    DimAttr bind(::llvm::function_ref<::std::optional<int64_t>(::llvm::StringRef)> sizeOf) const;
    /// The number of elements in a pack: the largest power of two, at most
    /// `most`, for which no pack crosses the end of a row or group. For rows of
    /// one element per group, this is 1. `most` must be a power of two.
    int64_t getPack(int64_t most) const;
    /// The number of packs in one group of a product, rounded up to a power of
    /// two so that groups stay aligned. `most` is as in getPack().
    int64_t getGroupPacks(int64_t most) const;
    /// The number of packs in a row, including those that pad groups. A row of
    /// one element per group has as many packs as a row along the product.
    /// `most` is as in getPack().
    int64_t getPacks(int64_t most) const;
    /// The text of the dim, as arguments and Python spell it: `D`, `128`,
    /// `(G 128)` or `b<=1024`. The text of `G per K` is `G per K`.
    std::string getText() const;
    /// The text of the dim, as diagnostics spell it: in quotes unless the dim is
    /// bound, `"D"`, `128`, `"(G 128)"` or `"b<=1024"`.
    std::string str() const;
  }];
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
    /// The base, or none while the attribute is a name.
    ::std::optional<LogBase> getBase() const;
    /// The name; empty once bound.
    ::llvm::StringRef getName() const;
  }];
  let skipDefaultBuilders = 1;
}

def Mlafix_LayoutAttr : Mlafix_Attr<"Layout", "layout"> {
  let summary = "how a row is distributed over lanes: a part of `#mlafix.plan`";
  let description = [{
    One access moves at most `pack` consecutive elements. `lanes` threads share a row. Lane `l` holds the elements
    `[(p * lanes + l) * pack, … + pack)` for each of its packs `p`, at most `packs` of them. A thread block works on
    `rows` rows. The pack size depends on the dim: it is the largest power of two that divides `pack` and the dim's size,
    so that no pack straddles a row's end. If lanes synchronise (wait for each other or exchange values), their number is a
    power of two.

    Along a product, no pack straddles a group's end either. If a group is not a power of two of packs, it is padded
    with packs that do not exist. In a row of one element per group, a lane holds one element for each of its packs:
    that of the pack's group. If all lanes share each group, every lane holds each element once.

    With `groups` above 1, the launch chooses how many groups of lanes, at most `groups`, share the chunks of a row's
    merge loops. The lanes of a row then do not synchronise, and may be in several blocks.

    With `blocks` above 1, the lanes of a row are the threads of that many blocks, a thread-block cluster: block `b` of
    the cluster has the lanes from `b * lanes / blocks` on.

    With `parts` above 1, no op combines the packs of a row. That many blocks, which do not wait for each other, each
    have a part of the row: `lanes * packs` consecutive packs, held by `lanes` lanes as if they were a row. If the size
    of a row is known only at launch, the launch makes as many parts as the row needs, at most `parts`.

    ```mlir
    #mlafix.layout<lanes = 16, packs = 1, pack = 8, rows = 8>
    #mlafix.layout<lanes = 128, packs = 1, pack = 4, rows = 1, groups = 16>
    #mlafix.layout<lanes = 4096, packs = 4, pack = 8, rows = 1, blocks = 8>
    #mlafix.layout<lanes = 256, packs = 1, pack = 8, rows = 1, parts = 63>
    ```
  }];
  let parameters = (ins "int64_t":$lanes, "int64_t":$packs, "int64_t":$pack, "int64_t":$rows, DefaultValuedParameter<"int64_t", "1">:$groups,
    DefaultValuedParameter<"int64_t", "1">:$blocks, DefaultValuedParameter<"int64_t", "1">:$parts);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "int64_t":$lanes, "int64_t":$packs, "int64_t":$pack, "int64_t":$rows, "int64_t":$groups), [{
    return $_get($_ctxt, lanes, packs, pack, rows, groups, /*blocks=*/1, /*parts=*/1);
  }]>];
  let extraClassDeclaration = [{
    /// The largest number of threads of a block.
    int64_t getThreads() const { return isGrouped() ? std::min(kGroupThreads * getGroups(), kMostGrouped) : getLanes() * getRows() / getBlocks(); }
    /// True if the blocks of a cluster share a row.
    bool isClustered() const { return getBlocks() > 1; }
    /// True if a row is cut into parts, which blocks process without waiting for
    /// each other.
    bool isInParts() const { return getParts() > 1; }
    /// The number of elements in a part of a row along `dim`.
    int64_t partFor(DimAttr dim) const { return getLanes() * getPacks() * packFor(dim); }
    /// The number of parts of the longest row along `dim`.
    int64_t partsFor(DimAttr dim) const;
    /// True if the launch chooses the number of lane groups of a row.
    bool isGrouped() const { return getGroups() > 1; }
    /// The number of threads of each lane group in the largest block, unless
    /// all groups together would then have more threads than kMostGrouped.
    static constexpr int64_t kGroupThreads = limits::warpThreads;
    /// The largest number of threads of a block with lane groups. Each thread
    /// of such a block may have 128 registers.
    static constexpr int64_t kMostGrouped = 512;
    /// The least number of threads of a lane group within a block. With 8
    /// threads instead of a warp, a launch of few rows has four times as many
    /// blocks, so it uses up to four times as many multiprocessors.
    static constexpr int64_t kLeastGrouped = 8;
    /// The number of elements in a pack of a row along `dim`.
    int64_t packFor(DimAttr dim) const { return dim.getPack(getPack()); }
    /// The number of packs that a lane holds of a row along `dim`.
    int64_t packsFor(DimAttr dim) const;
    /// True if rows along `dim` have one element per group, and all lanes share
    /// each group. Each lane then holds all elements of such a row.
    bool sharesGroups(DimAttr dim) const;
  }];
}

def Mlafix_PlanAttr : Mlafix_Attr<"Plan", "plan"> {
  let summary = "everything that the compiler decides about a code version: written by `mlafix-plan-kernel`";
  let description = [{
    The layout of rows, and the fields of `dialect/PlanFields.def` in any order. An omitted field has its initial value.
    `mlafix-plan-kernel` makes all decisions; the passes after it follow the plan.

    ```mlir
    #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 8, rows = 8>>
    #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 8, rows = 16>, block = bytes, least_threads = 128, plain_rows = yes>
    ```
  }];
  // `numbers` has the value of each field, in the order of PlanField.
  let parameters = (ins "LayoutAttr":$layout, ArrayRefParameter<"int64_t">:$numbers);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// A plan with this layout, all of whose fields have their initial values.
    static PlanAttr get(LayoutAttr layout);
    /// The value of a field. For a flag this is 0 or 1, for a choice the index of
    /// the value.
    int64_t getNumber(PlanField field) const;
    bool has(PlanField flag) const { return getNumber(flag) != 0; }
    /// A copy of this plan with another value of a field, or another layout.
    PlanAttr with(PlanField field, int64_t value) const;
    PlanAttr with(LayoutAttr layout) const;
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
