//===- RowOps.td - rows and scalars -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ROW_OPS
#define MLAFIX_ROW_OPS

include "dialect/MlafixOpBase.td"

def Mlafix_LoadOp : Mlafix_Op<"load", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<Mlafix_MemoryAccessOpInterface>,
    OptionalTypesMatchWith<"'else' value has the element type of the result", "result", "other", "::mlir::getElementTypeOrSelf($_self)">]> {
  let summary = "reads a row tile or a scalar";
  let description = [{
    With one index fewer than the memref has dims, the op reads the row along the last dim; otherwise it reads one
    element. The last dim has stride 1 (N12). It may have any stride if another argument has a product with this dim as
    its first factor: the rows then have one element per group. Floats widen to f32. Integers extend to the width of the
    result, by their sign. Booleans stay as they are. If the memref's dtype is a variable, a load as i64 only moves the
    element when the variable is bound to a float or a boolean (`mlafix-specialize` lists what such a kernel may do). If
    the predicate is false, nothing is read and the result is the `else` value, or zero without `else`. An access out of
    bounds gives zero (`mlafix-guard-bounds`). An omitted optional argument reads as zeros where the predicate is true:
    `else` applies to the predicate alone. `if` with `mlafix.present` gives an omitted tensor another value.

    If the last dim of the tensor is a product, G groups of K elements, `group` names one group of the row: a row along
    K of adjacent elements. `member` names one element of each group: a row along G of elements that are K apart.
    `group` and `member` together name one element. `group` is below G and `member` is below K. If a tensor has such an
    access, all its accesses of single elements have this form.

    `slice B to E` names the elements B, …, E - 1 of a row: a row of E - B elements, along any dim of that size. The dim
    of the tensor's rows must then have at least E elements and must not be a product.

    ```mlir
    %row = mlafix.load %x[%t, %h] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
    %len = mlafix.load %lens[%i] if %p else %zero : memref<?xi32, strided<[1], offset: ?>> -> i32
    %wide = mlafix.load %lens[%i] : memref<?xi32, strided<[1], offset: ?>> -> i64
    %half = mlafix.load %halves[%t, %h] group %i : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"K">>
    %even = mlafix.load %pairs[%t, %h] member %i : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"K">>
    %rope = mlafix.load %x[%t, %h] slice 512 to 576 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<64xf32, #mlafix.dim<64>>
    ```
  }];
  let arguments = (ins
    Arg<AnyMemRef, "source", [MemRead]>:$source, Variadic<Index>:$indices, Optional<I1>:$predicate, Optional<Mlafix_Scalar>:$other,
    Optional<Index>:$group, Optional<Index>:$member, OptionalAttr<I64Attr>:$begin, OptionalAttr<I64Attr>:$end);
  let results = (outs Mlafix_Value:$result);
  // Builds a load of a whole row or of an element, not of a part or a slice.
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source, "::mlir::ValueRange":$indices, "::mlir::Value":$predicate, "::mlir::Value":$other), [{
    build($_builder, $_state, result, source, indices, predicate, other, /*group=*/{}, /*member=*/{}, /*begin=*/{}, /*end=*/{});
  }]>];
  let assemblyFormat = [{
    $source `[` $indices `]` (`group` $group^)? (`member` $member^)? (`slice` $begin^ `to` $end)? (`if` $predicate^)? (`else` $other^)? attr-dict `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Mlafix_LoadIntoOp : Mlafix_Op<"load_into", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<Mlafix_MemoryAccessOpInterface>]> {
  let summary = "reads a row into the end of a longer one";
  let description = [{
    For `i >= first`, element `i` of the result is element `(i - first) / each` of the row in memory. A row of Z
    elements is repeated: the element is `(i - first) / each % Z`. A row along a dim with a bound is not repeated:
    elements past its end are zero. Elements before `first` are zero. All elements are zero if the predicate is false or
    the row is out of bounds. A negative `first` shifts the row to the left: element 0 of the result is element `-first
    / each` of the row. In all other respects the op reads like `mlafix.load`, also with `slice B to E`. The dim of the
    result must have at least `first` elements.

    ```mlir
    %cos = mlafix.load_into %x[%t, %h] from 448 each 2 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"K">>
    ```
  }];
  let arguments = (ins
    Arg<AnyMemRef, "source", [MemRead]>:$source, Variadic<Index>:$indices, I64Attr:$first, DefaultValuedAttr<I64Attr, "1">:$each, Optional<I1>:$predicate,
    OptionalAttr<I64Attr>:$begin, OptionalAttr<I64Attr>:$end);
  let results = (outs Mlafix_RowTile:$result);
  let assemblyFormat = [{
    $source `[` $indices `]` (`slice` $begin^ `to` $end)? `from` $first (`each` $each^)? (`if` $predicate^)? attr-dict `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Mlafix_StoreOp : Mlafix_Op<"store", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<Mlafix_MemoryAccessOpInterface>]> {
  let summary = "writes a row tile or a scalar";
  let description = [{
    The reverse of `mlafix.load`, also for a group, a member or a slice. f32 narrows to the memref's float type, rounded
    to nearest even. f8E4M3FN saturates at +-448 and f8E5M2 at +-57344; infinities saturate, too, and NaN stays NaN
    (N7). For f8E8M0FNU, f32 is rounded up to a power of two from 2^-127 to 2^127. Bytes (i8 and ui8) take f32, rounded
    to nearest even, i32 and i64. Values out of range saturate, and NaN becomes 0. Other integers are stored as they
    are. If the memref's dtype is a variable, the body does not know its width: an i32 or i64 is stored with the width
    that the variable is bound to, by sign extension or truncation. If the predicate is false, nothing is written.

    ```mlir
    mlafix.store %row, %x[%t, %h] if %p : tensor<?xf32, #mlafix.dim<"D">>, memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
    mlafix.store %row, %out[%t, %h] slice 64 to 128 : tensor<?xf32, #mlafix.dim<"D">>, memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
    ```
  }];
  let arguments = (ins
    Mlafix_Value:$value, Arg<AnyMemRef, "target", [MemWrite]>:$target, Variadic<Index>:$indices, Optional<I1>:$predicate,
    Optional<Index>:$group, Optional<Index>:$member, OptionalAttr<I64Attr>:$begin, OptionalAttr<I64Attr>:$end);
  let builders = [OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$target, "::mlir::ValueRange":$indices, "::mlir::Value":$predicate), [{
    build($_builder, $_state, value, target, indices, predicate, /*group=*/{}, /*member=*/{}, /*begin=*/{}, /*end=*/{});
  }]>];
  let assemblyFormat = [{
    $value `,` $target `[` $indices `]` (`group` $group^)? (`member` $member^)? (`slice` $begin^ `to` $end)? (`if` $predicate^)? attr-dict `:` type($value) `,` type($target)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Mlafix_StoreMembersOp : Mlafix_Op<"store_members", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<Mlafix_MemoryAccessOpInterface>]> {
  let summary = "writes a whole row of groups, given one row tile per member";
  let description = [{
    Replaces the stores of all members of a row once the row is distributed over lanes (`mlafix-join-members`). `values`
    are the rows of member 0, member 1 and so on, all along G. Each lane writes all members of the groups in its pack
    with one access.

    ```mlir
    mlafix.kernel @clear(%x: memref<?x128xbf16, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(64 2)"], mlafix.access = "write"}) {
      %c0 = arith.constant 0 : index
      %zeros = arith.constant dense<0.0> : tensor<64xf32, #mlafix.dim<64>>
      %n = memref.dim %x, %c0 : memref<?x128xbf16, strided<[?, 1], offset: ?>>
      mlafix.forall (%t) in (%n) {
        mlafix.store_members(%zeros, %zeros), %x[%t] : tensor<64xf32, #mlafix.dim<64>>, memref<?x128xbf16, strided<[?, 1], offset: ?>>
      }
    }
    ```
  }];
  let arguments = (ins
    Variadic<Mlafix_RowTile>:$values, Arg<AnyMemRef, "target", [MemWrite]>:$target, Variadic<Index>:$indices, Optional<I1>:$predicate);
  let assemblyFormat = [{
    `(` $values `)` `,` $target `[` $indices `]` (`if` $predicate^)? attr-dict `:` custom<MemberTypes>(type($values), ref($values)) `,` type($target)
  }];
  let hasVerifier = 1;
}

def Mlafix_PresentOp : Mlafix_Op<"present", [Pure]> {
  let summary = "whether an optional argument was passed";
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

def Mlafix_SameTensorOp : Mlafix_Op<"same_tensor", [Pure, Commutative]> {
  let summary = "whether two arguments are the same tensor";
  let description = [{
    Compares only the addresses at which the two tensors begin. That suffices: if two tensors begin at the same address
    and one is written, a launch requires equal sizes and strides (N11). Two omitted arguments are the same.

    ```mlir
    %in_place = mlafix.same_tensor %out, %x : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
    ```
  }];
  let arguments = (ins AnyMemRef:$lhs, AnyMemRef:$rhs);
  let results = (outs I1:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
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

def Mlafix_IotaOp : Mlafix_Op<"iota", [Pure]> {
  let summary = "a row tile of i32 whose elements are their own indices";
  let description = [{
    0, 1, 2 and so on, up to the dim's size less 1.

    ```mlir
    %indices = mlafix.iota : tensor<?xi32, #mlafix.dim<"D">>
    ```
  }];
  let results = (outs Mlafix_RowTile:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Mlafix_BroadcastOp : Mlafix_Op<"broadcast", [Pure]> {
  let summary = "repeats each element of a row of one element per group over all elements of that group";
  let description = [{
    ```mlir
    %s = mlafix.broadcast %scales : tensor<?xf32, #mlafix.dim<"G">> -> tensor<?xf32, #mlafix.dim<"G" x "K">>
    ```
  }];
  let arguments = (ins Mlafix_RowTile:$source);
  let results = (outs Mlafix_RowTile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Mlafix_ReduceOp : Mlafix_Op<"reduce", [Pure]> {
  let summary = "reduces a row tile to a scalar, or each of its groups to an element";
  let description = [{
    The order is one fixed binary tree over the element's index, for every layout: element 2i is combined with 2i + 1,
    then pairs with pairs. Missing elements are neutral (N9). `max` and `min` propagate NaN. In a row along a dim with a
    bound, the elements past the end are missing: the result is that of a row of the dim's actual size. For a row
    without elements, the sum is 0, the maximum -inf or the least integer, and the minimum inf or the greatest integer.
    For booleans, `max` is true if any element is true, and `min` if all are.

    If the result is a row along the first factor of a product, each group is reduced to one element of that row, by a
    tree over the index in the group. If a row along a product is reduced to a scalar, each group is reduced first, and
    then the groups' results by a tree of their own.

    With `in_lane`, each lane reduces the elements that it holds, so lanes of one row may have different results. Only
    passes create this form.

    ```mlir
    %sum = mlafix.reduce add %row : tensor<?xf32, #mlafix.dim<"D">>
    %largest = mlafix.reduce max %groups : tensor<?xf32, #mlafix.dim<"G" x "K">> -> tensor<?xf32, #mlafix.dim<"G">>
    ```
  }];
  let arguments = (ins Mlafix_ReduceKindAttr:$kind, Mlafix_RowTile:$source, UnitAttr:$in_lane);
  let results = (outs Mlafix_Value:$result);
  let assemblyFormat = "$kind (`in_lane` $in_lane^)? $source attr-dict `:` custom<ReduceTypes>(type($source), type($result))";
  let hasVerifier = 1;
}

def Mlafix_ArgReduceOp : Mlafix_Op<"arg_reduce", [Pure]> {
  let summary = "the index of the greatest or least element of a row tile, or of each of its groups";
  let description = [{
    Ties go to the lowest index. Zeros of different signs are equal. NaN ranks beyond all numbers, for `max` and for
    `min`: if a row contains NaN, the result is the index of the first one. The result is 0 if a row along a dim with a
    bound has no elements. If the result is a row along the first factor of a product, it has the index of each group's
    extreme within that group.

    ```mlir
    %best = mlafix.arg_reduce max %row : tensor<?xf32, #mlafix.dim<"D">>
    %each = mlafix.arg_reduce max %groups : tensor<?xf32, #mlafix.dim<"G" x "K">> -> tensor<?xi32, #mlafix.dim<"G">>
    ```
  }];
  let arguments = (ins Mlafix_ReduceKindAttr:$kind, Mlafix_RowTile:$source);
  let results = (outs Mlafix_Value:$result);
  let assemblyFormat = "$kind $source attr-dict `:` custom<ArgReduceTypes>(type($source), type($result))";
  let hasVerifier = 1;
}

def Mlafix_TopKOp : Mlafix_Op<"top_k", [Pure, SameVariadicResultSize]> {
  let summary = "the greatest elements of a row tile, or of each of its groups, and their indices";
  let description = [{
    The results are the greatest elements, in descending order, and then their indices. There are as many elements as
    `values`. Equal elements come in the order of their indices; zeros of different signs are equal, and both are
    returned as 0. NaN ranks beyond all numbers, as in `mlafix.arg_reduce`. If the results are rows along the first
    factor of a product, they have an element for each group. The row, or each group, must have at least as many
    elements as there are `values`. A row along a dim with a bound may have fewer: the remaining values are -inf or the
    least integer, with index 0.

    ```mlir
    %best:4 = mlafix.top_k %row : tensor<?xf32, #mlafix.dim<"D">> -> f32, f32, i32, i32
    ```
  }];
  let arguments = (ins Mlafix_RowTile:$source);
  let results = (outs Variadic<Mlafix_Value>:$values, Variadic<Mlafix_Value>:$indices);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` custom<TopKTypes>(type($values), type($indices))";
  let hasVerifier = 1;
}

def Mlafix_ScanOp : Mlafix_Op<"scan", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "the running reductions of a row tile, or of each of its groups";
  let description = [{
    Element i of the result is the `mlafix.reduce` of the elements 0 to i, as if the row ended there: a running sum,
    maximum or minimum. The order is that of the reduction, for every layout (N9), so the last element equals the row's
    reduction bit for bit. A running sum of elements that are at least 0 never decreases.

    `in_groups` scans each group of a row along a product separately. Without it, a row along a product is scanned as it
    is reduced: element i combines the groups before its own with the elements of its own group up to i.

    ```mlir
    %sums = mlafix.scan add %row : tensor<?xf32, #mlafix.dim<"D">>
    %largest = mlafix.scan max %groups in_groups : tensor<?xf32, #mlafix.dim<"G" x "K">>
    ```
  }];
  let arguments = (ins Mlafix_ReduceKindAttr:$kind, Mlafix_RowTile:$source, UnitAttr:$inGroups);
  let results = (outs Mlafix_RowTile:$result);
  let assemblyFormat = "$kind $source (`in_groups` $inGroups^)? attr-dict `:` type($source)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Mlafix_SwapOp : Mlafix_Op<"swap", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "a row tile in which neighbouring blocks have changed places";
  let description = [{
    Element `i` of the result is element `i xor block`: with a block of 1, neighbours change places; with 32, the first
    32 elements and the next 32, and so on. `block` is a power of two. The size of the dim is a compile-time constant
    and a multiple of two blocks. In a product whose groups do not have a power of two of elements, this holds for the
    size of a group instead.

    ```mlir
    %others = mlafix.swap %row by 1 : tensor<?xf32, #mlafix.dim<"D">>
    ```
  }];
  let arguments = (ins Mlafix_RowTile:$source, I64Attr:$block);
  let results = (outs Mlafix_RowTile:$result);
  let assemblyFormat = "$source `by` $block attr-dict `:` type($source)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // MLAFIX_ROW_OPS
