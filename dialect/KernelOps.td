//===- KernelOps.td - the kernel and its grid -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_KERNEL_OPS
#define MLAFIX_KERNEL_OPS

include "dialect/LaunchAttrs.td"
include "dialect/MlafixOpBase.td"

def Mlafix_KernelOp : Mlafix_Op<"kernel", [
    FunctionOpInterface, IsolatedFromAbove, AutomaticAllocationScope, SingleBlockImplicitTerminator<"ReturnOp">,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "a kernel: named arguments, one grid, one row in its body";
  let description = [{
    A function-like symbol without results whose body holds exactly one grid op (`mlafix.forall` or `mlafix.ragged_forall`) and the
    constants and dims that the grid needs.

    Every memref argument carries
    - `mlafix.dims`: a name per dim. Equal names must agree at launch. An upper-case name is a compile-time constant that
      `mlafix-specialize` binds; a lower-case one is dynamic unless its type says a size or it is bound to one, as an
      optimisation; dims with an empty name are independent. `"(G K)"` is a product, one dim of G * K elements in groups of K: each factor is an upper-case name or a number. Such
      a dim is dynamic until its names are bound;
    - `mlafix.access`: `"read"`, `"write"` (every element is written) or `"update"` (some elements are);
    - optionally, for a tensor with access `"write"`, `mlafix.fill`: what elements get that no store writes. This is a
      number (`0xFF800000 : f32`), or `"identity"`: -inf for the lse of a `mlafix.store_state`, and 0 for all else. The
      grid must run over exactly the rows of the tensor, or over its elements if elements are stored
      (`mlafix-fill-outputs`);
    - optionally `mlafix.dtype`: a dtype variable. Until it is bound, the tensor has the element type of the memref;
    - optionally `mlafix.optional`: the tensor may be omitted at launch; loads of it then give zeros, states the identity, and stores do nothing
      (see `mlafix.present`). `mlafix-specialize` may bind its name: to `absent` (the access becomes `"absent"`, nothing
      in the body uses the argument, and a launch must omit it) or to `present` (it is not optional any more);
    - optionally `mlafix.peers`, for a tensor with access `"read"`, or `"update"` in a kernel with `mlafix.exchange`:
      each rank of a group has a tensor of its own, all of the same sizes, strides and dtype. The first dim counts the
      ranks, at most 72. The tensor of each rank has its own address, so the first stride is dynamic and means nothing.
      A kernel with such an argument is *collective*: all ranks launch it, and `mlafix-place-collectives` makes them
      wait for each other. A collective kernel has a dense grid, and all its peers' tensors have the same first dim;
    - optionally, for a tensor with access `"read"`, `mlafix.list`, a number from 1 to 72: a call passes a list of at
      least one and at most that many tensors, all of the same sizes, strides and dtype. The first dim counts the
      tensors. Each has its own address, as with `mlafix.peers`;
    - optionally `mlafix.swizzle = "128x4"` or `"8x4"`: rows, which are the first dim, and columns, which are all other dims, one behind another, lie in tiles of 128 or 8 rows and 4
      columns, as the scales of block-scaled matrix products do. With rows `pitch` elements apart, the first stride, the element at row `r` and column `c` is number
      `(r / 128 * (pitch / 4) + c / 4) * 512 + r % 32 * 16 + r % 128 / 32 * 4 + c % 4`, or in tiles of 8 rows
      `(r / 8 * (pitch / 4) + c / 4) * 32 + r % 8 * 4 + c % 4`. The number of rows counts padding: a multiple of 128 or of 8; the pitch is a multiple
      of 4, and the columns or more. So no two elements of the tensor have one place, and a store to one writes no other, nor padding. Such a tensor is accessed by elements, or by
      rows of one element a group.

    Two elements of f4E2M1FN share a byte, the first one in its low half. Rows of them begin at a byte: the last dim has stride 1 and an even size, other strides are
    in bytes. They are accessed by rows, or groups, of an even number of elements, and a dtype variable does not stand for them.

    A scalar argument (`index`, `i64`, `i32`, `f32`, `i1`) may carry `mlafix.at_most`, the name of a dim that bounds it: the launch
    refuses a value outside `[0, dim]`. The arguments' SSA names are part of the kernel: hosts bind arguments by them.

    `defaults` gives the values of names (upper-case dims, dtype variables, bases of the lse) for which
    `mlafix-specialize` gets none: `attributes {defaults = {B = "e"}}`. The value is a number for a dim, and a string
    for other names. The default of a base may be another base, `{B = "e", P = "B"}`. A `rebase` between two names with
    the same value folds.

    `most` gives upper bounds of lower-case dims, so that rows may lie along them: `attributes {most = {b = 1024}}`. A
    launch with a larger size is refused. Rows along such a dim have a type with as many elements as the bound,
    `tensor<1024xf32, #mlafix.dim<"b" most 1024>>`. Elements past the actual size of the dim are not read, not written
    and not reduced. At least one tensor that is always given must have the dim. The dim can be neither that of a state
    nor a factor of a product.

    `bounds` says what happens to an access that is not proved to be in bounds. With `"guard"`, the default, the access
    gets a bounds guard (`mlafix-guard-bounds`). With `"prove"`, the access is an error.

    `allow` lists what `mlafix-prove` and `mlafix-warn-nan` do not report: `"races"` (two rows may write the same
    element, or one may read what the other writes, even if an example is found), `"bounds"` (accesses that are out of
    bounds for some sizes) and `"nan"`: `attributes {allow = ["races"]}`.

    Besides constants, dims and arithmetic on them, promises stand before the grid: `mlafix.assume`, `mlafix.distinct`.

    ```mlir
    mlafix.kernel @scale(%x: memref<?x?xbf16, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "update"},
                         %factor: f32) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : memref<?x?xbf16, strided<[?, 1], offset: ?>>
      mlafix.forall (%t) in (%n) {
        %v = mlafix.load %x[%t] : memref<?x?xbf16, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
        %f = mlafix.splat %factor : f32 -> tensor<?xf32, #mlafix.dim<"D">>
        %y = arith.mulf %v, %f : tensor<?xf32, #mlafix.dim<"D">>
        mlafix.store %y, %x[%t] : tensor<?xf32, #mlafix.dim<"D">>, memref<?x?xbf16, strided<[?, 1], offset: ?>>
      }
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type, StrArrayAttr:$arg_names,
    OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs,
    OptionalAttr<DictionaryAttr>:$defaults, OptionalAttr<DictionaryAttr>:$bindings, OptionalAttr<Mlafix_PlanAttr>:$plan,
    OptionalAttr<Mlafix_GuardArray>:$guards, OptionalAttr<Mlafix_Geometry>:$geometry, OptionalAttr<StrAttr>:$bounds,
    OptionalAttr<StrArrayAttr>:$allow, OptionalAttr<DictionaryAttr>:$most);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizeMethod = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }

    /// The argument's name, as hosts spell it.
    ::llvm::StringRef getArgName(unsigned index);
    /// The argument's `mlafix.dims`; null for a scalar.
    ::mlir::ArrayAttr getArgDims(unsigned index);
    /// The argument's `mlafix.access`; empty for a scalar.
    ::llvm::StringRef getArgAccess(unsigned index);
    bool isArgOptional(unsigned index);
    /// True if the argument stands for several tensors, one of each rank.
    bool isArgPeers(unsigned index);
    /// True if the argument stands for several tensors: one of each rank, or
    /// those of a list. The argument's first dim is the number of tensors.
    bool isArgMany(unsigned index);
    /// The greatest number of tensors that a call may pass for an argument that
    /// stands for several.
    int64_t getArgMost(unsigned index);
    /// True if some argument stands for a tensor of each rank.
    bool isCollective();
    /// The `mlafix.exchange` in the kernel; null if there is none.
    ExchangeOp getExchange();
    /// True if the argument is optional and bound to `absent`. Nothing uses such
    /// an argument.
    bool isArgAbsent(unsigned index);
    /// The bound that the attribute `most` gives for the dims called `dim`, or
    /// none.
    ::std::optional<int64_t> getMostOf(::llvm::StringRef dim);
    /// True if an access that is not proved to be in bounds is an error.
    bool provesBounds() { return getBounds() == "prove"; }
    /// True if the attribute `allow` lists `kind`, which is "races", "bounds" or
    /// "nan". The compiler then reports nothing of this kind.
    bool allows(::llvm::StringRef kind);
    /// The layout of the plan; null without a plan.
    LayoutAttr getLayoutAttr() { return getPlanAttr() ? getPlanAttr().getLayout() : LayoutAttr(); }
    /// The grid op; null once `mlafix-distribute` has replaced it.
    ::mlir::Operation *getGrid();
  }];
}

def Mlafix_ReturnOp : Mlafix_Op<"return", [Pure, Terminator, HasParent<"KernelOp">]> {
  let summary = "ends a kernel";
  let description = [{
    Implicit in the custom form.

    ```mlir
    mlafix.kernel @nothing() {
      %c1 = arith.constant 1 : index
      mlafix.forall (%t) in (%c1) {
      }
      mlafix.return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Mlafix_YieldOp : Mlafix_Op<"yield", [
    Pure, Terminator, ReturnLike, ParentOneOf<["ForallOp", "RaggedForallOp", "MergeLoopOp"]>]> {
  let summary = "ends a region: of a grid, where a `where` region yields the predicate, or of a merge loop, which yields a state";
  let description = [{
    ```mlir
    mlafix.kernel @drop(%out: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "update"},
                        %cu_seqlens: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["b1"], mlafix.access = "read"}) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %out, %c0 : memref<?xf32, strided<[?], offset: ?>>
      mlafix.ragged_forall (%seg, %row) in (%cu_seqlens, %n) : memref<?xi32, strided<[1], offset: ?>> where {
        %first = arith.cmpi eq, %seg, %c0 : index
        mlafix.yield %first : i1
      } do {
        %zero = arith.constant 0.0 : f32
        mlafix.store %zero, %out[%row] : f32, memref<?xf32, strided<[?], offset: ?>>
      }
    }
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Mlafix_ForallOp : Mlafix_Op<"forall", [
    SingleBlockImplicitTerminator<"YieldOp">, HasParent<"KernelOp">]> {
  let summary = "the grid: one program per row of a dense index space";
  let description = [{
    Runs its body once for every tuple of indices below the extents, in no particular order. The extents are dims of
    arguments, integer arguments or constants, so that the launch geometry is data. Nothing runs when one of them is
    zero (N12). Other passes must assume unknown effects: so a kernel keeps its grid, and its geometry, whatever its
    body folds to.

    ```mlir
    mlafix.kernel @zero(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "m"], mlafix.access = "write"}) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
      %m = memref.dim %x, %c1 : memref<?x?xf32, strided<[?, 1], offset: ?>>
      mlafix.forall (%i, %j) in (%n, %m) {
        %zero = arith.constant 0.0 : f32
        mlafix.store %zero, %x[%i, %j] : f32, memref<?x?xf32, strided<[?, 1], offset: ?>>
      }
    }
    ```
  }];
  let arguments = (ins Variadic<Index>:$extents);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Mlafix_RaggedForallOp : Mlafix_Op<"ragged_forall", [HasParent<"KernelOp">]> {
  let summary = "the grid: the rows of the segments for which a predicate holds";
  let description = [{
    `cu_seqlens` holds the start of each segment and the end of the last: segment `s` is the rows `[cu_seqlens[s], cu_seqlens[s + 1])`. The
    `where` region is evaluated once per segment; the `do` region runs for each row of the segments for which it yields
    true, and for each tuple of the inner extents. The second operand bounds the rows: a segment counts only if `0 <=
    start <= end <= rows`, so malformed `cu_seqlens` never lead out of bounds. The cost is proportional to the selected
    rows and one scan of the predicate; the longest segment does not matter.

    ```mlir
    mlafix.kernel @blank(%lse: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["n", "H"], mlafix.access = "update"},
                         %kv_lens: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"},
                         %cu_seqlens: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["b1"], mlafix.access = "read"}) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = memref.dim %lse, %c0 : memref<?x?xf32, strided<[?, ?], offset: ?>>
      %H = memref.dim %lse, %c1 : memref<?x?xf32, strided<[?, ?], offset: ?>>
      mlafix.ragged_forall (%seg, %row, %h) in (%cu_seqlens, %n, %H) : memref<?xi32, strided<[1], offset: ?>> where {
        %len = mlafix.load %kv_lens[%seg] : memref<?xi32, strided<[1], offset: ?>> -> i32
        %zero = arith.constant 0 : i32
        %dead = arith.cmpi sle, %len, %zero : i32
        mlafix.yield %dead : i1
      } do {
        %empty = arith.constant 0xFF800000 : f32
        mlafix.store %empty, %lse[%row, %h] : f32, memref<?x?xf32, strided<[?, ?], offset: ?>>
      }
    }
    ```
  }];
  let arguments = (ins AnyMemRef:$cu_seqlens, Index:$rows, Variadic<Index>:$inner);
  let regions = (region SizedRegion<1>:$predicate, SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

#endif // MLAFIX_KERNEL_OPS
