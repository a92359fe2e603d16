//===- LaunchAttrs.td - what a launch knows of a code version *- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Attributes for the guards, parameters and geometry of a code version.
// docs/UnitFormat.md says what they mean to the runtime. The compiler and the
// runtime share Guards.def and Params.def.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LAUNCH_ATTRS
#define MLAFIX_LAUNCH_ATTRS

include "dialect/MlafixAttrs.td"

def Mlafix_GuardAttr : Mlafix_Attr<"Guard", "guard"> {
  let summary = "what must hold of a call for a code version to be launched";
  let description = [{
    `include/mlafix/Guards.def` lists the kinds and their fields; `mlafix-plan-kernel` writes the guards. Arguments are
    given by index. A list of arguments has no duplicates.

    ```mlir
    #mlafix.guard<align, args = [0, 2, 4], bytes = 16>
    #mlafix.guard<distinct, args = [0, 2]>
    #mlafix.guard<same_strides, args = [3, 5, 1]>
    #mlafix.guard<beyond_cache, args = [0, 2]>
    #mlafix.guard<max_rows, value = 134217727>
    #mlafix.guard<stride, arg = 0, dim = 1, value = 128>
    #mlafix.guard<packed, arg = 0, dim = 0, value = 128>
    #mlafix.guard<multiple, arg = 0, dim = 1, value = 4>
    #mlafix.guard<at_most, arg = 0, dim = 1, value = 256>
    ```
  }];
  let parameters = (ins "::mlafix::GuardKind":$kind, ArrayRefParameter<"int64_t">:$args, "int64_t":$dim, "int64_t":$number);
  let builders = [AttrBuilder<(ins "::mlafix::GuardKind":$kind, "::llvm::ArrayRef<int64_t>":$args, CArg<"int64_t", "0">:$number), [{
    return $_get($_ctxt, kind, args, /*dim=*/0, number);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    const ::mlafix::GuardSpec &getSpec() const { return ::mlafix::specOf(getKind()); }
    /// True if the guard is about argument `arg`.
    bool isAbout(int64_t arg) const { return ::llvm::is_contained(getArgs(), arg); }
  }];
}

def Mlafix_GuardArray : TypedArrayAttrBase<Mlafix_GuardAttr, "guards">;

def Mlafix_ParamAttr : Mlafix_Attr<"Param", "param"> {
  let summary = "one parameter of a compiled kernel: a value that a launch passes";
  let description = [{
    `include/mlafix/Params.def` lists the kinds and their fields.

    ```mlir
    #mlafix.param<pointer, arg = 0>
    #mlafix.param<size, arg = 0, dim = 1>
    #mlafix.param<stride, arg = 0, dim = 1>
    #mlafix.param<reciprocal, arg = 0, dim = 1>
    #mlafix.param<scalar, arg = 6>
    #mlafix.param<group_threads>
    #mlafix.param<local>
    #mlafix.param<peers, arg = 2, ranks = 8>
    #mlafix.param<group, ranks = 8>
    ```
  }];
  let parameters = (ins "::mlafix::ParamKind":$kind, "int64_t":$arg, "int64_t":$dim, "int64_t":$ranks);
  let skipDefaultBuilders = 1;
  let builders = [AttrBuilder<(ins "::mlafix::ParamKind":$kind, CArg<"int64_t", "0">:$arg, CArg<"int64_t", "0">:$dim, CArg<"int64_t", "0">:$ranks), [{
    return $_get($_ctxt, kind, arg, dim, ranks);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    const ::mlafix::ParamSpec &getSpec() const { return ::mlafix::specOf(getKind()); }
  }];
}

def Mlafix_ExtentAttr : Mlafix_Attr<"Extent", "extent"> {
  let summary = "an extent of a grid: a tensor's size, an integer argument or a constant";
  let description = [{
    With `per`, the extent is the tensor's size divided by `per`, rounded up, and at least 1.

    ```mlir
    #mlafix.extent<arg = 0, dim = 1>
    #mlafix.extent<arg = 0, dim = 1, per = 2048>
    #mlafix.extent<arg = 3>
    #mlafix.extent<value = 128>
    ```
  }];
  // -1 stands for a field that the extent does not have.
  let parameters = (ins "int64_t":$arg, "int64_t":$dim, "int64_t":$value, "int64_t":$per);
  let builders = [
    AttrBuilder<(ins "int64_t":$arg, "int64_t":$dim, CArg<"int64_t", "1">:$per), [{ return $_get($_ctxt, arg, dim, /*value=*/-1, per); }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static ExtentAttr ofScalar(::mlir::MLIRContext *context, int64_t arg) { return get(context, arg, -1, -1, 1); }
    static ExtentAttr ofConstant(::mlir::MLIRContext *context, int64_t value) { return get(context, -1, -1, value, 1); }
    bool isConstant() const { return getArg() < 0; }
    bool isSize() const { return getDim() >= 0; }
  }];
}

//===----------------------------------------------------------------------===//
// Geometries
//===----------------------------------------------------------------------===//

class Mlafix_GeometryAttr<string name, string attrMnemonic> : Mlafix_Attr<name, attrMnemonic> {
  let genVerifyDecl = 1;
}

def Mlafix_GridGeometryAttr : Mlafix_GeometryAttr<"GridGeometry", "grid"> {
  let summary = "how a GPU launches a dense grid";
  let description = [{
    The number of rows is the product of the extents. A block of `threads` threads processes `rows_per_block` rows. If
    `least_threads` is below `threads`, a launch with few rows may halve both numbers repeatedly, down to
    `least_threads` threads. With `cluster` above 1, a thread-block cluster of that many consecutive blocks shares one
    row. With `parts`, that many consecutive blocks each process a part of one row and do not wait for each other. In
    both cases `rows_per_block` is 1.

    ```mlir
    #mlafix.grid<[<arg = 0, dim = 0>, <value = 128>], rows_per_block = 16, threads = 256, least_threads = 128>
    #mlafix.grid<[<arg = 0, dim = 0>], rows_per_block = 1, threads = 512, least_threads = 512, cluster = 8>
    #mlafix.grid<[<arg = 0, dim = 0>] parts <arg = 0, dim = 1, per = 2048>, rows_per_block = 1, threads = 256, least_threads = 256>
    ```
  }];
  let parameters = (ins
    OptionalArrayRefParameter<"ExtentAttr">:$extents, "int64_t":$rowsPerBlock, "int64_t":$threads, "int64_t":$leastThreads,
    DefaultValuedParameter<"int64_t", "1">:$cluster, OptionalParameter<"ExtentAttr">:$parts);
  let assemblyFormat = [{
    `<` `[` (`]`) : ($extents^ `]`)? (`parts` $parts^)? `,` `rows_per_block` `=` $rowsPerBlock `,` `threads` `=` $threads `,`
    `least_threads` `=` $leastThreads (`,` `cluster` `=` $cluster^)? `>`
  }];
}

def Mlafix_RaggedGeometryAttr : Mlafix_GeometryAttr<"RaggedGeometry", "ragged"> {
  let summary = "how a GPU launches a ragged grid";
  let description = [{
    Each multiprocessor gets at most `blocks_per_sm` blocks of `threads` threads. They share the pairs of a row and
    inner indices: `rows` times the inner extents. A block takes `rows_per_block` pairs at a time. With `fits`, the
    number of blocks is the one that the registers of a multiprocessor permit, computed from the assembler's register
    count per thread. If there is no such count, `blocks_per_sm` applies.

    ```mlir
    #mlafix.ragged<rows = <arg = 0, dim = 0>, inner = [<value = 16>], rows_per_block = 64, threads = 256, blocks_per_sm = 1>
    #mlafix.ragged<rows = <arg = 0, dim = 0>, inner = [<value = 16>], rows_per_block = 64, threads = 256, blocks_per_sm = 4, fits = true>
    ```
  }];
  let parameters = (ins
    "ExtentAttr":$rows, OptionalArrayRefParameter<"ExtentAttr">:$inner, "int64_t":$rowsPerBlock, "int64_t":$threads, "int64_t":$blocksPerSm,
    DefaultValuedParameter<"bool", "false">:$fits);
  let assemblyFormat = [{
    `<` `rows` `=` $rows `,` `inner` `=` `[` (`]`) : ($inner^ `]`)? `,` `rows_per_block` `=` $rowsPerBlock `,` `threads` `=` $threads `,`
    `blocks_per_sm` `=` $blocksPerSm (`,` `fits` `=` $fits^)? `>`
  }];
}

def Mlafix_GroupsGeometryAttr : Mlafix_GeometryAttr<"GroupsGeometry", "groups"> {
  let summary = "how a GPU launches a dense grid in which lane groups share the pieces of a row";
  let description = [{
    A row has `lanes` lanes. The launch chooses the number of lane groups, a power of two up to `most`. It grows with
    the number of `pieces`, of which a group processes `chunk` at a time, as long as no multiprocessor has more than
    `threads_per_sm` threads. A block has at most `threads` threads, and a group has at least `least_threads` threads in
    it.

    ```mlir
    #mlafix.groups<[<arg = 0, dim = 0>], lanes = 64, threads = 512, most = 16, chunk = 4, least_threads = 32, threads_per_sm = 2048, pieces = <arg = 2, dim = 0>>
    ```
  }];
  let parameters = (ins
    OptionalArrayRefParameter<"ExtentAttr">:$extents, "int64_t":$lanes, "int64_t":$threads, "int64_t":$most, "int64_t":$chunk,
    "int64_t":$leastThreads, "int64_t":$threadsPerSm, "ExtentAttr":$pieces);
  let assemblyFormat = [{
    `<` `[` (`]`) : ($extents^ `]`)? `,` `lanes` `=` $lanes `,` `threads` `=` $threads `,` `most` `=` $most `,` `chunk` `=` $chunk `,`
    `least_threads` `=` $leastThreads `,` `threads_per_sm` `=` $threadsPerSm `,` `pieces` `=` $pieces `>`
  }];
}

def Mlafix_CpuGeometryAttr : Mlafix_GeometryAttr<"CpuGeometry", "cpu"> {
  let summary = "how a CPU shares out a grid";
  let description = [{
    One call processes a range of rows. In a dense grid the number of rows is the product of the extents. In a ragged
    grid it is the first extent, and a row includes all inner indices. Ranges should be multiples of `rows_per_block`
    rows.

    ```mlir
    #mlafix.cpu<[<arg = 0, dim = 0>, <value = 128>], rows_per_block = 2048>
    #mlafix.cpu<ragged [<arg = 0, dim = 0>, <value = 16>], rows_per_block = 1>
    ```
  }];
  let parameters = (ins
    "bool":$isRagged, OptionalArrayRefParameter<"ExtentAttr">:$extents, "int64_t":$rowsPerBlock);
  let hasCustomAssemblyFormat = 1;
}

def Mlafix_Geometry : AnyAttrOf<[
  Mlafix_GridGeometryAttr, Mlafix_RaggedGeometryAttr, Mlafix_GroupsGeometryAttr, Mlafix_CpuGeometryAttr], "launch geometry">;

//===----------------------------------------------------------------------===//
// Code versions
//===----------------------------------------------------------------------===//

def Mlafix_VariantAttr : Mlafix_Attr<"Variant", "variant"> {
  let summary = "what a unit says of a code version: on a lowered function, as `mlafix.variant`";
  let description = [{
    The function's name, its guards, the values that a launch passes, the number of threads, the layout of the code, and
    whether the code waits for the preceding grid. Code that waits may be launched before that grid ends.

    ```mlir
    #mlafix.variant<"scale_any", guards = [], params = [<pointer, arg = 0>], geometry = #mlafix.cpu<[<arg = 0, dim = 0>], rows_per_block = 1>, layout = <lanes = 1, packs = 1, pack = 4, rows = 1>>
    ```
  }];
  let parameters = (ins
    "::mlir::StringAttr":$entry, OptionalArrayRefParameter<"GuardAttr">:$guards, OptionalArrayRefParameter<"ParamAttr">:$params,
    "::mlir::Attribute":$geometry, "LayoutAttr":$layout, DefaultValuedParameter<"bool", "false">:$dependentLaunch);
  let assemblyFormat = [{
    `<` $entry `,` `guards` `=` `[` (`]`) : ($guards^ `]`)? `,` `params` `=` `[` (`]`) : ($params^ `]`)? `,` `geometry` `=` $geometry `,`
    `layout` `=` $layout (`,` `dependent_launch` `=` $dependentLaunch^)? `>`
  }];
  let genVerifyDecl = 1;
}

#endif // MLAFIX_LAUNCH_ATTRS
