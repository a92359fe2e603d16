//===- RowProgramOps.td - ops of a distributed kernel -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ROW_PROGRAM_OPS
#define MLAFIX_ROW_PROGRAM_OPS

include "dialect/MlafixDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Mlafix_RowOp : Op<Mlafix_Dialect, "row", [
    AttrSizedOperandSegments, NoRegionArguments, SingleBlockImplicitTerminator<"EndRowOp">]> {
  let summary = "the program of one row, of which this thread does its lane's share";
  let description = [{
    What a grid's body becomes on a GPU, for the passes between the one that shares the grid out over threads and
    `mlafix-inline-rows`. `lane` is this thread's place among the lanes of its row; it is missing if a row has one lane.
    `mask` has the lanes of the row within their warp; it is missing if they never synchronise. With `whole_warps`
    either all rows of a warp exist or none, so that where every row comes, all threads of the warp do. In a layout of
    lane groups, `groups` are this thread's group, the number of groups of its block, the threads of a group, and this
    thread's number among them.

    ```mlir
    mlafix.row lane %i mask %zero {
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

def Mlafix_EndRowOp : Op<Mlafix_Dialect, "end_row", [Pure, Terminator, HasParent<"RowOp">]> {
  let summary = "ends the program of a row";
  let description = [{
    Implicit in the custom form.

    ```mlir
    mlafix.row {
      mlafix.end_row
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Mlafix_PushOp : Op<Mlafix_Dialect, "push", [
    TypesMatchWith<"type of 'value' matches element type of 'memref'", "memref", "value", "::llvm::cast<::mlir::MemRefType>($_self).getElementType()">]> {
  let summary = "stores a value into the shared memory of one block of the cluster";
  let description = [{
    `memref` is shared memory of this thread's own block; what is stored to is the same place in that of block `block` of the cluster. To be
    executed once all blocks of the cluster have begun, and before they meet for the last time. For GPUs;
    `mlafix-kernels-to-nvvm` lowers it.

    ```mlir
    %partials = memref.alloca() : memref<8xf32, #gpu.address_space<workgroup>>
    mlafix.push %one, %partials[%i] to %zero : memref<8xf32, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins AnyType:$value, Arg<AnyMemRef, "", [MemWrite]>:$memref, Index:$index, I32:$block);
  let assemblyFormat = "$value `,` $memref `[` $index `]` `to` $block attr-dict `:` type($memref)";
}

def Mlafix_TableLinesOp : Op<Mlafix_Dialect, "table_lines", [Pure]> {
  let summary = "the lines of a cache that a small tensor takes";
  let description = [{
    A number that a launch passes (the parameter `lines` of docs/UnitFormat.md): the number of lines of 128 bytes that
    the grid's blocks prefetch, one each, from the tensor's first element on. 0 if it is not contiguous along its last
    dim, takes more than 128 KiB, or would gain nothing.

    ```mlir
    %lines = mlafix.table_lines %lse : memref<?x?xf32, strided<[?, ?], offset: ?>>
    ```
  }];
  let arguments = (ins AnyMemRef:$source);
  let results = (outs I64:$lines);
  let assemblyFormat = "$source attr-dict `:` type($source)";
}

def Mlafix_SizeReciprocalOp : Op<Mlafix_Dialect, "size_reciprocal", [Pure]> {
  let summary = "what divides by a size that is known at the launch";
  let description = [{
    A number that a launch passes (the parameter `reciprocal` of docs/UnitFormat.md), of the size s of a tensor's dim. With m in its lower 32 bits and e in the upper ones,
    x / s is (2 x m >> 32) >> e for every x from 0 to 2^31 - 1.

    ```mlir
    %reciprocal = mlafix.size_reciprocal %out dim 1 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, ConfinedAttr<I64Attr, [IntNonNegative]>:$dim);
  let results = (outs I64:$reciprocal);
  let assemblyFormat = "$source `dim` $dim attr-dict `:` type($source)";
}

def Mlafix_WaitPeersOp : Op<Mlafix_Dialect, "wait_peers"> {
  let summary = "tells the other ranks that this one has come, and waits for them";
  let description = [{
    To be executed by every thread of a collective kernel once the preceding grid has completed, before the first access of a peer's memory. The first block tells all ranks
    that what the preceding grids wrote can be read; each block waits until all ranks have said so. False, alike in all threads of a block, if a rank has not come before the launch's time-out, or
    if an earlier launch of the group failed so. For GPUs; `mlafix-kernels-to-nvvm` lowers it.

    ```mlir
    %arrived = mlafix.wait_peers : i1
    ```
  }];
  let results = (outs I1:$arrived);
  let assemblyFormat = "attr-dict `:` type($arrived)";
}

def Mlafix_ReleasePeersOp : Op<Mlafix_Dialect, "release_peers"> {
  let summary = "tells the other ranks that this one has read their memory, and waits until they have read its own";
  let description = [{
    To be executed by every thread after the last access of a peer's memory. The last block to get here tells all ranks,
    and waits for all, so that the grid is complete once nobody reads what the next one may overwrite. False in all
    threads of a block if a rank had not come by the time the block had read everything. A rank that knows of that does
    not wait for the others, so the block may have read what was written since.

    ```mlir
    %valid = mlafix.release_peers %p : i1
    ```
  }];
  let arguments = (ins I1:$arrived);
  let results = (outs I1:$valid);
  let assemblyFormat = "$arrived attr-dict `:` type($valid)";
}

def Mlafix_BeginExchangeOp : Op<Mlafix_Dialect, "begin_exchange"> {
  let summary = "which launch of the group this is, and whether rows may be sent";
  let description = [{
    To be executed by every thread of a kernel with `mlafix.exchange` once the preceding grid has completed, before the first store to a peer's memory. `turn` is 0 or 1, alike on all ranks.
    `sends` is false if an earlier launch of the group has failed: then nothing is to be stored to the peers. For GPUs; `mlafix-kernels-to-nvvm` lowers it.

    ```mlir
    %turn, %sends = mlafix.begin_exchange : index, i1
    ```
  }];
  let results = (outs Index:$turn, I1:$sends);
  let assemblyFormat = "attr-dict `:` type($turn) `,` type($sends)";
}

def Mlafix_EndExchangeOp : Op<Mlafix_Dialect, "end_exchange"> {
  let summary = "tells the other ranks that this block's rows are there, and waits for theirs";
  let description = [{
    To be executed by every thread after the block's last store to a peer's memory, before the first load of what the peers stored. Each block tells the same block of all ranks, and waits for it. False,
    alike in all threads of a block, if a rank has not come before the launch's time-out, or if an earlier launch of the group failed so.

    ```mlir
    %arrived = mlafix.end_exchange %p : i1
    ```
  }];
  let arguments = (ins I1:$sends);
  let results = (outs I1:$arrived);
  let assemblyFormat = "$sends attr-dict `:` type($arrived)";
}

def Mlafix_PredicatedLoadOp : Op<Mlafix_Dialect, "predicated_load", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "a load that takes no branch, and stays where it is";
  let description = [{
    What is at `pointer` if `condition` holds, else any value: 1, 2, 4 or 8 words of 32 bits. LLVM and ptxas would move another load to its uses.
    `mlafix-kernels-to-nvvm` makes it of loads that a thread issues before it waits for other ranks; `mlafix-overlap-grids` replaces it by PTX.

    ```mlir
    %pointer = llvm.mlir.zero : !llvm.ptr<1>
    %pack = mlafix.predicated_load %pointer if %p : !llvm.ptr<1> -> vector<8xbf16>
    ```
  }];
  let arguments = (ins AnyType:$pointer, I1:$condition);
  let results = (outs AnyType:$value);
  let assemblyFormat = "$pointer `if` $condition attr-dict `:` type($pointer) `->` type($value)";
  let hasVerifier = 1;
}

#endif // MLAFIX_ROW_PROGRAM_OPS
