//===- MlafixOps.td - operations -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_OPS
#define MLAFIX_OPS

include "dialect/MlafixInterfaces.td"
include "dialect/MlafixTypes.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/LoopLikeInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

class Mlafix_Op<string mnemonic, list<Trait> traits = []> : Op<Mlafix_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// The kernel and its grid
//===----------------------------------------------------------------------===//

def Mlafix_KernelOp : Mlafix_Op<"kernel", [
    FunctionOpInterface, IsolatedFromAbove, AutomaticAllocationScope, SingleBlockImplicitTerminator<"ReturnOp">,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "a kernel: named arguments, one grid, one row in its body";
  let description = [{
    A function-like symbol without results whose body holds exactly one grid op (`mlafix.forall` or `mlafix.ragged_forall`) and the
    constants and dims that the grid needs.

    Every memref argument carries
    - `mlafix.dims`: a name per dim. Equal names must agree at launch. An upper-case name is a compile-time constant that
      `mlafix-specialize` binds; a lower-case one is dynamic unless its type says a size or it is bound to one, as an optimisation; an
      empty name ties nothing;
    - `mlafix.access`: `"read"`, `"write"` (every element is written) or `"update"` (some elements are);
    - optionally `mlafix.dtype`: a dtype variable. The element type written is what it is until bound;
    - optionally `mlafix.optional`: the tensor may be left out at launch; loads and stores of it then do nothing
      (see `mlafix.present`). `mlafix-specialize` may bind its name: to `absent` (the access becomes `"absent"`, nothing in the
      body uses the argument, and a launch must leave it out) or to `present` (it is optional no more).

    A scalar argument (`index`, `i64`, `i32`, `f32`, `i1`) may carry `mlafix.at_most`, the name of a dim that bounds it: the launch
    refuses a value outside `[0, dim]`. The arguments' SSA names are part of the kernel: hosts bind arguments by them.

    `defaults` says what a name (an upper-case dim, a dtype variable, a base of the lse) is bound to where `mlafix-specialize` is not
    told: `attributes {defaults = {B = "e"}}`, a number for a dim, a string for the others.

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
    OptionalAttr<DictionaryAttr>:$defaults, OptionalAttr<DictionaryAttr>:$bindings, OptionalAttr<Mlafix_LayoutAttr>:$layout,
    OptionalAttr<ArrayAttr>:$guards, OptionalAttr<DictionaryAttr>:$geometry);
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
    /// Whether an optional argument was bound as absent: nothing uses it.
    bool isArgAbsent(unsigned index);
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
    Runs its body once for every tuple of indices below the extents, in no order. The extents are dims of arguments, integer
    arguments or constants, so that the launch geometry is data. Nothing runs when one of them is zero (N12). Its effects are unknown to
    other passes on purpose: a kernel keeps its grid, and its geometry, whatever its body folds to.

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
    `where` region is asked once per segment; the `do` region runs for each row of the segments for which it yields true, and for
    each tuple of the inner extents. The second operand bounds the rows: a segment counts only if
    `0 <= start <= end <= rows`, so malformed `cu_seqlens` never lead out of bounds. The cost follows the selected rows and one scan of the
    predicate, whatever the longest segment is.

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

//===----------------------------------------------------------------------===//
// The algebra of states
//===----------------------------------------------------------------------===//

def Mlafix_LoadStateOp : Mlafix_Op<"load_state", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<Mlafix_MemoryAccessOpInterface>]> {
  let summary = "reads a state: a payload row and its lse";
  let description = [{
    Both infinities mean empty (N2). Where the predicate is false nothing is read and the state is the identity (N5), and so it is where an
    optional argument was not given. Floats widen to f32 (N7). The base of the lse is the result type's (N8).

    ```mlir
    %s = mlafix.load_state %out[%t, %h] lse %lse[%h, %t] if %live
        : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?xf32, strided<[?, ?], offset: ?>> -> !mlafix.state<"D", e>
    ```
  }];
  let arguments = (ins
    Arg<AnyMemRef, "payload", [MemRead]>:$out, Variadic<Index>:$outIndices,
    Arg<AnyMemRef, "log-sum-exp", [MemRead]>:$lse, Variadic<Index>:$lseIndices, Optional<I1>:$predicate);
  let results = (outs Mlafix_StateType:$result);
  let assemblyFormat = [{
    $out `[` $outIndices `]` `lse` $lse `[` $lseIndices `]` (`if` $predicate^)? attr-dict
    `:` type($out) `,` type($lse) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Mlafix_MakeStateOp : Mlafix_Op<"make_state", [Pure]> {
  let summary = "a state of a payload row and its lse, wherever they come from";
  let description = [{
    For states that memory holds in another form than payload and lse. Both infinities mean empty (N2), and then the row may hold anything
    (N5). The base of the lse is the result type's (N8).

    ```mlir
    %s = mlafix.make_state %row lse %one : tensor<?xf32, #mlafix.dim<"D">> -> !mlafix.state<"D", e>
    ```
  }];
  let arguments = (ins Mlafix_RowTile:$row, F32:$lse);
  let results = (outs Mlafix_StateType:$result);
  let assemblyFormat = "$row `lse` $lse attr-dict `:` type($row) `->` type($result)";
  let hasVerifier = 1;
}

def Mlafix_IdentityOp : Mlafix_Op<"identity", [Pure]> {
  let summary = "the empty state: out = +0.0, lse = -inf (N1)";
  let description = [{
    ```mlir
    %e = mlafix.identity : !mlafix.state<"D", e>
    ```
  }];
  let results = (outs Mlafix_StateType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Mlafix_MergeOp : Mlafix_Op<"merge", [Pure, Commutative, SameOperandsAndResultType]> {
  let summary = "the monoid's operation on one or more states";
  let description = [{
    With m the largest lse, w_i = base^(lse_i - m) and s = sum w_i, the result has lse m + log(s) and out sum (w_i / s) * out_i.
    Empty operands contribute nothing (N3, N4), nor does a payload whose weight is zero, whatever it holds (N5); NaN in a live
    lse stays (N6). All operands have the result's dim and base (N8). The sum of w_i * out_i is divided by s when it is stored: of k states that are merged into
    one row, payloads must be smaller than 2^128 / k for it not to overflow (N7).

    Folds: identities drop out, a single operand is itself, nested merges flatten.

    ```mlir
    %m = mlafix.merge %a, %b, %c : !mlafix.state<"D", e>
    ```
  }];
  let arguments = (ins Variadic<Mlafix_StateType>:$states);
  let results = (outs Mlafix_StateType:$result);
  let assemblyFormat = "$states attr-dict `:` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Mlafix_MergeLoopOp : Mlafix_Op<"merge_loop", [
    RecursiveMemoryEffects, DeclareOpInterfaceMethods<LoopLikeOpInterface>]> {
  let summary = "a running merge, chunk by chunk";
  let description = [{
    For `k` = lower, lower + step, … below upper, in this order: merges the state that the body yields, the merge of one *chunk*, into the running
    state, which begins as `init`. The operands of the two merges stay apart: the result's bits are those of this order, whoever computes the chunks, and
    so several groups of lanes may compute them side by side (N9). `mlafix-chunk-merges` makes it of `scf.for`; a body may be run for a `k` of upper or more, and
    yields the identity then.

    After `mlafix-lower-states` the state is its three values, and `base` says what the base of its lse was.

    ```mlir
    %all = mlafix.merge_loop %k = %c0 to %n step 4 init(%a) : !mlafix.state<"D", e> {
      %part = mlafix.load_state %x[%k, %h] lse %lse[%h, %k]
          : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?xf32, strided<[?, ?], offset: ?>> -> !mlafix.state<"D", e>
      mlafix.yield %part : !mlafix.state<"D", e>
    }
    ```
  }];
  let arguments = (ins
    Index:$lower, Index:$upper, I64Attr:$step, Variadic<AnyType>:$init, OptionalAttr<Mlafix_BaseAttr>:$base);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getInductionVar() { return getBody().getArgument(0); }
    /// What the body yields: one chunk, merged.
    ::mlir::OperandRange getChunk();
  }];
}

def Mlafix_MaskOp : Mlafix_Op<"mask", [Pure, AllTypesMatch<["state", "result"]>]> {
  let summary = "the state where the predicate holds, else the identity";
  let description = [{
    Folds: constant predicates, mask of mask, mask of the identity; a mask of a load sinks into the load's predicate, so that the row
    is not read (N5).

    ```mlir
    %masked = mlafix.mask %s, %p : !mlafix.state<"D", e>
    ```
  }];
  let arguments = (ins Mlafix_StateType:$state, I1:$predicate);
  let results = (outs Mlafix_StateType:$result);
  let assemblyFormat = "$state `,` $predicate attr-dict `:` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Mlafix_RebaseOp : Mlafix_Op<"rebase", [Pure]> {
  let summary = "converts the lse between base e and base 2 (N8)";
  let description = [{
    lse_2 = lse_e * log2(e). The payload does not change; empty stays empty.

    ```mlir
    %r = mlafix.rebase %s : !mlafix.state<"D", e> -> !mlafix.state<"D", 2>
    ```
  }];
  let arguments = (ins Mlafix_StateType:$state);
  let results = (outs Mlafix_StateType:$result);
  let assemblyFormat = "$state attr-dict `:` type($state) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Mlafix_StoreStateOp : Mlafix_Op<"store_state", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<Mlafix_MemoryAccessOpInterface>]> {
  let summary = "normalises a state and writes its payload row, its lse, or both";
  let description = [{
    An empty state writes +0.0 and -inf (N1, N3). Floats narrow to the memref's element type, round to nearest even; f8E4M3FN saturates
    at +-448 and keeps NaN (N7). With a scale the payload is multiplied by 1 / scale, which is computed once, in f32. Where the
    predicate is false nothing is written.

    ```mlir
    mlafix.store_state %s to %out[%t, %h] lse %lse[%h, %t] if %live
        : !mlafix.state<"D", e>, memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?xf32, strided<[?, ?], offset: ?>>
    mlafix.store_state %s to %out[%t, %h] : !mlafix.state<"D", e>, memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
    mlafix.store_state %s lse %lse[%h, %t] : !mlafix.state<"D", e>, memref<?x?xf32, strided<[?, ?], offset: ?>>
    mlafix.store_state %s to %quantized[%t, %h] scale %scale
        : !mlafix.state<"D", e>, memref<?x?x?xf8E4M3FN, strided<[?, ?, 1], offset: ?>>
    ```
  }];
  let arguments = (ins
    Mlafix_StateType:$state,
    Arg<Optional<AnyMemRef>, "payload", [MemWrite]>:$out, Variadic<Index>:$outIndices,
    Arg<Optional<AnyMemRef>, "log-sum-exp", [MemWrite]>:$lse, Variadic<Index>:$lseIndices, Optional<I1>:$predicate,
    Optional<F32>:$scale);
  let assemblyFormat = [{
    $state (`to` $out^ `[` $outIndices `]`)? (`scale` $scale^)? (`lse` $lse^ `[` $lseIndices `]`)? (`if` $predicate^)? attr-dict
    `:` custom<StoreTypes>(type($state), type($out), type($lse), ref($out), ref($lse))
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

//===----------------------------------------------------------------------===//
// Rows and scalars
//===----------------------------------------------------------------------===//

def Mlafix_LoadOp : Mlafix_Op<"load", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<Mlafix_MemoryAccessOpInterface>,
    OptionalTypesMatchWith<"'else' value has the element type of the result", "result", "other", "::mlir::getElementTypeOrSelf($_self)">]> {
  let summary = "reads a row tile or a scalar";
  let description = [{
    With one index less than the memref has dims it reads the row along the last dim, else one element. Floats widen to f32, integers
    to the width of the result, by their sign; booleans stay as they are. Where the predicate is false nothing is read and the result is the `else`
    value, zero where there is none. An optional argument that was left out reads as zeros where the predicate holds: `else` is about the
    predicate alone, and `if` with `mlafix.present` says what a tensor that was left out stands for.

    ```mlir
    %row = mlafix.load %x[%t, %h] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
    %len = mlafix.load %lens[%i] if %p else %zero : memref<?xi32, strided<[1], offset: ?>> -> i32
    %wide = mlafix.load %lens[%i] : memref<?xi32, strided<[1], offset: ?>> -> i64
    ```
  }];
  let arguments = (ins
    Arg<AnyMemRef, "source", [MemRead]>:$source, Variadic<Index>:$indices, Optional<I1>:$predicate, Optional<Mlafix_Scalar>:$other);
  let results = (outs Mlafix_Value:$result);
  let assemblyFormat = [{
    $source `[` $indices `]` (`if` $predicate^)? (`else` $other^)? attr-dict `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Mlafix_StoreOp : Mlafix_Op<"store", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<Mlafix_MemoryAccessOpInterface>]> {
  let summary = "writes a row tile or a scalar";
  let description = [{
    The reverse of `mlafix.load`: f32 narrows to the memref's float type, round to nearest even; f8E4M3FN saturates at +-448 and keeps
    NaN (N7). Integers are stored as they are; only where the memref's dtype is a variable, whose width the body does not know, an i32 or
    i64 is stored with the width that the variable is bound to: sign-extended, or its low bits. Where the predicate is false nothing is
    written.

    ```mlir
    mlafix.store %row, %x[%t, %h] if %p : tensor<?xf32, #mlafix.dim<"D">>, memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
    ```
  }];
  let arguments = (ins
    Mlafix_Value:$value, Arg<AnyMemRef, "target", [MemWrite]>:$target, Variadic<Index>:$indices, Optional<I1>:$predicate);
  let assemblyFormat = [{
    $value `,` $target `[` $indices `]` (`if` $predicate^)? attr-dict `:` type($value) `,` type($target)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Mlafix_PresentOp : Mlafix_Op<"present", [Pure]> {
  let summary = "whether an optional argument was given";
  let description = [{
    ```mlir
    %has_lse = mlafix.present %out_lse : memref<?x?xf32, strided<[?, ?], offset: ?>>
    ```
  }];
  let arguments = (ins AnyMemRef:$source);
  let results = (outs I1:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def Mlafix_SplatOp : Mlafix_Op<"splat", [
    Pure, TypesMatchWith<"scalar is the element type of the row tile", "result", "scalar", "::mlir::getElementTypeOrSelf($_self)">]> {
  let summary = "a row tile whose elements are all one scalar";
  let description = [{
    ```mlir
    %ones = mlafix.splat %one : f32 -> tensor<?xf32, #mlafix.dim<"D">>
    ```
  }];
  let arguments = (ins Mlafix_Scalar:$scalar);
  let results = (outs Mlafix_RowTile:$result);
  let assemblyFormat = "$scalar attr-dict `:` type($scalar) `->` type($result)";
}

def Mlafix_ReduceOp : Mlafix_Op<"reduce", [
    Pure, TypesMatchWith<"result is the element type of the row tile", "source", "result", "::mlir::getElementTypeOrSelf($_self)">]> {
  let summary = "reduces a row tile to a scalar";
  let description = [{
    The order is one fixed binary tree over the element's index, whatever the layout: element 2i meets 2i + 1, then pairs meet pairs,
    missing elements being neutral (N9). `max` and `min` keep NaN.

    ```mlir
    %sum = mlafix.reduce add %row : tensor<?xf32, #mlafix.dim<"D">>
    ```
  }];
  let arguments = (ins Mlafix_ReduceKindAttr:$kind, Mlafix_RowTile:$source);
  let results = (outs Mlafix_Scalar:$result);
  let assemblyFormat = "$kind $source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

#endif // MLAFIX_OPS
