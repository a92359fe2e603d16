//===- StateOps.td - the algebra of states -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_STATE_OPS
#define MLAFIX_STATE_OPS

include "dialect/MlafixOpBase.td"

def Mlafix_LoadStateOp : Mlafix_Op<"load_state", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<Mlafix_MemoryAccessOpInterface>]> {
  let summary = "reads a state: a payload row and its lse";
  let description = [{
    An lse of either infinity means empty (N2). If the predicate is false, nothing is read and the state is the identity
    (N5). An omitted optional argument gives the identity as well. Floats widen to f32 (N7). The result type gives the
    base of the lse (N8) and says whether the stored state includes a sink.

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
  let summary = "a state of a payload row and its lse";
  let description = [{
    For states that are stored in another form than payload and lse. An lse of either infinity means empty (N2); the row
    may then hold anything (N5). The result type gives the base of the lse (N8). A sink is a state of zeros whose lse is
    the sink's logit and whose type has `sink`. An infinite logit means no sink.

    ```mlir
    %s = mlafix.make_state %row lse %one : tensor<?xf32, #mlafix.dim<"D">> -> !mlafix.state<"D", e>
    %sink = mlafix.make_state %zeros lse %logit : tensor<?xf32, #mlafix.dim<"D">> -> !mlafix.state<"D", e, sink>
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

def Mlafix_MergeOp : Mlafix_Op<"merge", [Pure, Commutative]> {
  let summary = "the monoid's operation on one or more states";
  let description = [{
    With m the largest lse, w_i = base^(lse_i - m) and s = sum w_i, the result has lse m + log(s) and out
    sum (w_i / s) * out_i. Empty operands contribute nothing (N3, N4). A payload whose weight is zero contributes nothing
    either, whatever it holds (N5). NaN in a live lse propagates (N6). All operands have the result's dim and base (N8).
    The sum of w_i * out_i is divided by s only when the state is stored. If k states are merged into one row, the sum
    cannot overflow as long as payloads are smaller than 2^128 / k (N7).

    At most one operand has a sink in its type; then the result has one, too. The result may have a sink without such an
    operand: this serves a branch that merges no sink beside one that does.

    With `to_first`, the first operand has the largest lse of all. Its weight is 1, and the weights of the others are
    relative to it. It is a `mlafix.reference`, or the result of earlier merges to one.

    Folds: identities drop out, a single operand is itself, nested merges flatten.

    ```mlir
    %m = mlafix.merge %a, %b, %c : !mlafix.state<"D", e>
    %all = mlafix.merge %m, %sink : (!mlafix.state<"D", e>, !mlafix.state<"D", e, sink>) -> !mlafix.state<"D", e, sink>
    ```
  }];
  let arguments = (ins Variadic<Mlafix_StateType>:$states, UnitAttr:$to_first);
  let results = (outs Mlafix_StateType:$result);
  let assemblyFormat = "(`to_first` $to_first^)? $states attr-dict `:` custom<MergeTypes>(type($states), type($result), ref($states))";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Mlafix_MaxOfOp : Mlafix_Op<"max_of", [Pure]> {
  let summary = "the largest lse that was merged into a state";
  let description = [{
    For a loaded or made state, this is its lse; for an empty state, -inf (N2).

    ```mlir
    %most = mlafix.max_of %s : !mlafix.state<"D", e>
    ```
  }];
  let arguments = (ins Mlafix_StateType:$state);
  let results = (outs F32:$result);
  let assemblyFormat = "$state attr-dict `:` type($state)";
}

def Mlafix_ReferenceOp : Mlafix_Op<"reference", [Pure]> {
  let summary = "a state that holds nothing yet, and whose largest lse is given";
  let description = [{
    The initial value of a merge whose operands' lses are known not to exceed `max`. Each operand is weighed once,
    against `max`, and partial results are never rescaled. `mlafix-chunk-merges` and `mlafix-repair-merges` create the
    op. Only `to_first` merges and the loops that carry them may use it.

    ```mlir
    %none = mlafix.reference %one : !mlafix.state<"D", e>
    %both = mlafix.merge to_first %none, %a, %b : !mlafix.state<"D", e>
    ```
  }];
  let arguments = (ins F32:$max);
  let results = (outs Mlafix_StateType:$result);
  let assemblyFormat = "$max attr-dict `:` type($result)";
}

def Mlafix_HasNonfiniteOp : Mlafix_Op<"has_nonfinite", [Pure]> {
  let summary = "whether some element of a state's payload is infinite or NaN";
  let description = [{
    Examines only the elements that the lane holds, so lanes of one row may have different results. Only branches in
    which no lane waits for another may depend on the result.

    ```mlir
    %bad = mlafix.has_nonfinite %s : !mlafix.state<"D", e>
    ```
  }];
  let arguments = (ins Mlafix_StateType:$state);
  let results = (outs I1:$result);
  let assemblyFormat = "$state attr-dict `:` type($state)";
}

def Mlafix_RepairOp : Mlafix_Op<"repair", [Pure, AllTypesMatch<["state", "again", "result"]>]> {
  let summary = "replaces the elements of a state that are not finite by those of another state";
  let description = [{
    `again` is the merge of the same states, each weighed once against the largest lse. The lse is that of `state`.

    ```mlir
    %whole = mlafix.repair %a, %b : !mlafix.state<"D", e>
    ```
  }];
  let arguments = (ins Mlafix_StateType:$state, Mlafix_StateType:$again);
  let results = (outs Mlafix_StateType:$result);
  let assemblyFormat = "$state `,` $again attr-dict `:` type($state)";
}

def Mlafix_MergeLoopOp : Mlafix_Op<"merge_loop", [
    RecursiveMemoryEffects, DeclareOpInterfaceMethods<LoopLikeOpInterface>]> {
  let summary = "a running merge, chunk by chunk";
  let description = [{
    For `k` = lower, lower + step, … below upper, in this order, the loop merges the state that the body yields into the
    running state. The yielded state is the merge of one *chunk*; the running state begins as `init`. The two merges are
    kept separate, so the result has the bits of this order even if several groups of lanes compute chunks in parallel
    (N9). `mlafix-chunk-merges` creates the op from `scf.for`. A body may run for a `k` of upper or more; it must then
    yield the identity.

    With `to_first`, `init` has the largest lse of all, and every chunk was merged to a `mlafix.reference` with that
    lse. Chunks are then added without rescaling. If the loop carries f32 numbers instead of states, it computes their
    maximum.

    After `mlafix-lower-states` a loop of states carries the three values of the state, and `base` records the base of
    its lse.

    ```mlir
    %most = mlafix.merge_loop %k = %c0 to %n step 4 init(%logit) : f32 {
      %own = mlafix.load %lse[%h, %k] : memref<?x?xf32, strided<[?, ?], offset: ?>> -> f32
      mlafix.yield %own : f32
    }
    %first = mlafix.reference %most : !mlafix.state<"D", e>
    %all = mlafix.merge_loop to_first %k = %c0 to %n step 4 init(%first) : !mlafix.state<"D", e> {
      %next = mlafix.load_state %x[%k, %h] lse %lse[%h, %k]
          : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?xf32, strided<[?, ?], offset: ?>> -> !mlafix.state<"D", e>
      %part = mlafix.merge to_first %first, %next : !mlafix.state<"D", e>
      mlafix.yield %part : !mlafix.state<"D", e>
    }
    ```
  }];
  let arguments = (ins
    Index:$lower, Index:$upper, I64Attr:$step, Variadic<AnyType>:$init, OptionalAttr<Mlafix_BaseAttr>:$base,
    UnitAttr:$to_first);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getInductionVar() { return getBody().getArgument(0); }
    /// The operands of the body's yield: the merge of one chunk.
    ::mlir::OperandRange getChunk();
    /// True if the loop computes the maximum of f32 numbers instead of merging states.
    bool isOfNumbers() { return getInit().size() == 1 && getInit()[0].getType().isF32(); }
  }];
}

def Mlafix_MaskOp : Mlafix_Op<"mask", [Pure, AllTypesMatch<["state", "result"]>]> {
  let summary = "the state where the predicate holds, else the identity";
  let description = [{
    Folds: constant predicates, mask of mask, mask of the identity. A mask of a load sinks into the load's predicate, so
    that the row is not read (N5).

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
    lse_2 = lse_e * log2(e), clamped to the finite range of f32 if the lse is finite. The payload does not change. Empty
    states stay empty, and a sink stays included.

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

def Mlafix_PayloadOp : Mlafix_Op<"payload", [
    Pure, TypesMatchWith<"result is the row of the state", "state", "result", "::llvm::cast<::mlafix::StateType>($_self).getTileType()">]> {
  let summary = "the normalised payload row of a state";
  let description = [{
    The row that `mlafix.store_state` would write, in f32: +0.0 if the state is empty (N1, N3), NaN if its lse is NaN
    (N6).

    ```mlir
    %row = mlafix.payload %s : !mlafix.state<"D", e>
    ```
  }];
  let arguments = (ins Mlafix_StateType:$state);
  let results = (outs Mlafix_RowTile:$result);
  let assemblyFormat = "$state attr-dict `:` type($state)";
}

def Mlafix_LseOfOp : Mlafix_Op<"lse_of", [Pure]> {
  let summary = "the log-sum-exp of a state";
  let description = [{
    The lse that `mlafix.store_state` would write, in the base of the state's type; -inf if the state is empty (N1, N3).

    ```mlir
    %l = mlafix.lse_of %s : !mlafix.state<"D", e>
    ```
  }];
  let arguments = (ins Mlafix_StateType:$state);
  let results = (outs F32:$result);
  let assemblyFormat = "$state attr-dict `:` type($state)";
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

#endif // MLAFIX_STATE_OPS
