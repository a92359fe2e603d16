//===- MlafixThreadOps.td - the dialect of one thread's program -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_THREAD_OPS
#define MLAFIX_THREAD_OPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def MlafixThread_Dialect : Dialect {
  let name = "mlafix_thread";
  let cppNamespace = "::mlafix";
  let summary = "The program of one GPU thread, between passes";
  let description = [{
    The ops and the attribute of this dialect describe what one thread of a GPU does. Passes create them,
    `mlafix-lower-grid` first. `mlafix-kernels-to-nvvm` lowers all but `predicated_load`, which `mlafix-overlap-grids`
    lowers. `mlafix-opt --emit=distributed` prints them. The compiler refuses a kernel whose text contains such an op.
    [Dialect.md](Dialect.md) has the ops that a kernel may contain.
  }];
  let useDefaultAttributePrinterParser = 1;
}

class MlafixThread_Op<string mnemonic, list<Trait> traits = []> : Op<MlafixThread_Dialect, mnemonic, traits>;

def MlafixThread_ScratchAttr : AttrDef<MlafixThread_Dialect, "Scratch"> {
  let mnemonic = "scratch";
  let summary = "the memory space of an exchange between the threads of a block";
  let description = [{
    Shared memory like `#gpu.address_space<workgroup>`, but with a short lifetime: a barrier separates its last load
    from the next store to shared memory. Exchanges may therefore use the same memory. If they do,
    `mlafix-kernels-to-nvvm` adds such a barrier to each `mlafix_thread.await_pushes`.

    ```mlir
    #mlafix_thread.scratch
    ```
  }];
}

def MlafixThread_RowOp : MlafixThread_Op<"row", [
    AttrSizedOperandSegments, NoRegionArguments, SingleBlockImplicitTerminator<"EndRowOp">]> {
  let summary = "the program of one row, of which this thread does its lane's share";
  let description = [{
    On a GPU, the body of a grid becomes this op. It exists from `mlafix-lower-grid` to `mlafix-inline-rows`.

    - `lane`: this thread's number among the lanes of its row. It is missing if a row has one lane.
    - `mask`: the lanes of the row within their warp, as bits. It is missing if the lanes never synchronise.
    - `whole_warps`: in each warp, either all rows exist or none. So either all threads of a warp reach an op directly
      in the body, or none does.
    - `groups`, in a layout with lane groups: this thread's group, the number of groups of its block, the number of
      threads of a group, and this thread's number among them.

    ```mlir
    mlafix_thread.row lane %i mask %zero {
      %v = mlafix.load %x[%t, %h] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
      mlafix.store %v, %x[%t, %h] : tensor<?xf32, #mlafix.dim<"D">>, memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
    }
    ```
  }];
  let arguments = (ins Optional<Index>:$lane, Optional<I32>:$mask, Variadic<I32>:$groups, UnitAttr:$whole_warps);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`lane` $lane^)? (`mask` $mask^)? (`groups` `(` $groups^ `)`)? attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$lane, "::mlir::Value":$mask, "::mlir::ValueRange":$groups)>];
}

def MlafixThread_EndRowOp : MlafixThread_Op<"end_row", [Pure, Terminator, HasParent<"RowOp">]> {
  let summary = "ends the program of a row";
  let description = [{
    Implicit in the custom form.

    ```mlir
    mlafix_thread.row {
      mlafix_thread.end_row
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def MlafixThread_PushOp : MlafixThread_Op<"push", [
    TypesMatchWith<"type of 'value' matches element type of 'memref'", "memref", "value", "::llvm::cast<::mlir::MemRefType>($_self).getElementType()">]> {
  let summary = "stores a value into the shared memory of one block of the cluster";
  let description = [{
    `memref` is shared memory of this thread's own block. The op stores to the same place in the shared memory of block
    `block` of the cluster. It must be executed after all blocks of the cluster have begun, and before their last
    cluster barrier. If a `mlafix_thread.await_pushes` waits for `memref`, no cluster barrier is needed. The op is for
    GPUs; `mlafix-kernels-to-nvvm` lowers it.

    ```mlir
    %partials = memref.alloca() : memref<8xf32, #gpu.address_space<workgroup>>
    mlafix_thread.push %one, %partials[%i] to %zero : memref<8xf32, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins AnyType:$value, Arg<AnyMemRef, "", [MemWrite]>:$memref, Index:$index, I32:$block);
  let assemblyFormat = "$value `,` $memref `[` $index `]` `to` $block attr-dict `:` type($memref)";
}

def MlafixThread_AwaitPushesOp : MlafixThread_Op<"await_pushes"> {
  let summary = "waits until each element of a memref in shared memory has been pushed";
  let description = [{
    Waits until each element of `memref` of this block has been pushed. Blocks push each element once in a launch, so
    neither the pushes nor the op may be in a loop. The pushed values are visible after the op. Passes may not rely on
    it to order other accesses, so it is faster than a cluster barrier. A block may end once it has waited for its last pushes. The op is
    for GPUs; `mlafix-kernels-to-nvvm` lowers it.

    ```mlir
    %partials = memref.alloca() : memref<8xf32, #gpu.address_space<workgroup>>
    mlafix_thread.await_pushes %partials : memref<8xf32, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead, MemWrite]>:$memref);
  let assemblyFormat = "$memref attr-dict `:` type($memref)";
  let hasVerifier = 1;
}

def MlafixThread_TableLinesOp : MlafixThread_Op<"table_lines", [Pure]> {
  let summary = "the lines of a cache that a small tensor takes";
  let description = [{
    The result is a number that a launch passes ([UnitFormat.md](UnitFormat.md), parameter `lines`): the number of lines of 128 bytes that
    the grid's blocks prefetch, one each, from the tensor's first element on. The number is 0 if the tensor is not
    contiguous along its last dim or takes more than 128 KiB, or if a prefetch would gain nothing.

    ```mlir
    %lines = mlafix_thread.table_lines %lse : memref<?x?xf32, strided<[?, ?], offset: ?>>
    ```
  }];
  let arguments = (ins AnyMemRef:$source);
  let results = (outs I64:$lines);
  let assemblyFormat = "$source attr-dict `:` type($source)";
}

def MlafixThread_SizeReciprocalOp : MlafixThread_Op<"size_reciprocal", [Pure]> {
  let summary = "what divides by a size that is known at the launch";
  let description = [{
    The result is a number that a launch passes ([UnitFormat.md](UnitFormat.md), parameter `reciprocal`) for dividing by
    s, the size of a tensor's dim. The number has m in its lower 32 bits and e in the upper ones. The quotient x / s, rounded down, is
    (2 x m >> 32) >> e for every x from 0 to 2^31 - 1.

    ```mlir
    %reciprocal = mlafix_thread.size_reciprocal %out dim 1 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, ConfinedAttr<I64Attr, [IntNonNegative]>:$dim);
  let results = (outs I64:$reciprocal);
  let assemblyFormat = "$source `dim` $dim attr-dict `:` type($source)";
}

def MlafixThread_WaitPeersOp : MlafixThread_Op<"wait_peers"> {
  let summary = "tells the other ranks that this one has come, and waits for them";
  let description = [{
    Every thread of a collective kernel must execute the op after the preceding grid has completed, and before the first
    access to a peer's memory. The first block tells all ranks that they can read what the preceding grids wrote. Each
    block waits until all ranks have said the same. The result is the same in all threads of a block. It is false if a
    rank did not arrive before the launch's time-out, or if an earlier launch of the group failed in this way. The op is
    for GPUs; `mlafix-kernels-to-nvvm` lowers it.

    ```mlir
    %arrived = mlafix_thread.wait_peers : i1
    ```
  }];
  let results = (outs I1:$arrived);
  let assemblyFormat = "attr-dict `:` type($arrived)";
}

def MlafixThread_ReleasePeersOp : MlafixThread_Op<"release_peers"> {
  let summary = "tells the other ranks that this one has read their memory, and waits until they have read its own";
  let description = [{
    Every thread must execute the op after the last access to a peer's memory. The last block to execute it tells all
    ranks that this rank has read their memory, and waits until all ranks have said the same. So no rank still reads
    what the next grid may overwrite once this grid is complete. The result is the same in all threads of a block. It is
    false if a rank had not arrived by the time the block had read everything. A rank that knows of such a failure does
    not wait for the others, so the block may have read memory that was overwritten too early.

    ```mlir
    %valid = mlafix_thread.release_peers %p : i1
    ```
  }];
  let arguments = (ins I1:$arrived);
  let results = (outs I1:$valid);
  let assemblyFormat = "$arrived attr-dict `:` type($valid)";
}

def MlafixThread_BeginExchangeOp : MlafixThread_Op<"begin_exchange"> {
  let summary = "which launch of the group this is, and whether rows may be sent";
  let description = [{
    Every thread of a kernel with `mlafix.exchange` must execute the op after the preceding grid has completed, and
    before the first store to a peer's memory. `turn` is 0 or 1, the same on all ranks. `sends` is false if an earlier
    launch of the group has failed: nothing must then be stored to the peers. The op is for GPUs;
    `mlafix-kernels-to-nvvm` lowers it.

    ```mlir
    %turn, %sends = mlafix_thread.begin_exchange : index, i1
    ```
  }];
  let results = (outs Index:$turn, I1:$sends);
  let assemblyFormat = "attr-dict `:` type($turn) `,` type($sends)";
}

def MlafixThread_EndExchangeOp : MlafixThread_Op<"end_exchange"> {
  let summary = "tells the other ranks that this block's rows are there, and waits for theirs";
  let description = [{
    Every thread must execute the op after the block's last store to a peer's memory, and before the first load of what
    the peers stored. Each block tells the block with the same number on every rank that its rows are there, and waits
    until these blocks have said the same. The result is the same in all threads of a block. It is false if a rank did
    not arrive before the launch's time-out, or if an earlier launch of the group failed in this way.

    ```mlir
    %arrived = mlafix_thread.end_exchange %p : i1
    ```
  }];
  let arguments = (ins I1:$sends);
  let results = (outs I1:$arrived);
  let assemblyFormat = "$sends attr-dict `:` type($arrived)";
}

def MlafixThread_PredicatedLoadOp : MlafixThread_Op<"predicated_load", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "a load that takes no branch, and stays where it is";
  let description = [{
    If `condition` holds, the result is the value at `pointer`, of 1, 2, 4 or 8 words of 32 bits. Otherwise it is any
    value. LLVM and ptxas do not move this load; they would move an ordinary load to its uses. `mlafix-kernels-to-nvvm`
    creates the op for loads that a thread issues before it waits for other ranks. `mlafix-overlap-grids` replaces it by
    PTX.

    ```mlir
    %pointer = llvm.mlir.zero : !llvm.ptr<1>
    %pack = mlafix_thread.predicated_load %pointer if %p : !llvm.ptr<1> -> vector<8xbf16>
    ```
  }];
  let arguments = (ins AnyType:$pointer, I1:$condition);
  let results = (outs AnyType:$value);
  let assemblyFormat = "$pointer `if` $condition attr-dict `:` type($pointer) `->` type($value)";
  let hasVerifier = 1;
}

#endif // MLAFIX_THREAD_OPS
