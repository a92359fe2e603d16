//===- Passes.td - passes from rows to packs ---------------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ROWS_PASSES
#define MLAFIX_TRANSFORMS_ROWS_PASSES

include "lib/Transforms/PassOptions.td"

def JoinMembersPass : Pass<"mlafix-join-members", "::mlafix::KernelOp"> {
  let summary = "stores of all members of a row become one store";
  let description = [{
    The elements of a member are not adjacent in memory: if groups are pairs, a member is every second element. If one
    block stores all members of a row under one predicate, and does not touch the tensor between the first and the last
    of these stores, one store of whole groups replaces them. Each lane then stores with wide accesses. Loads need no
    such pass: the load of a member reads whole groups, and the loads of other members read the same groups.

    ```mlir
    // Before
    mlafix.store %even, %x[%t] member %c0 : tensor<64xf32, #mlafix.dim<64>>, memref<?x128xbf16, strided<[?, 1], offset: ?>>
    mlafix.store %odd, %x[%t] member %c1 : tensor<64xf32, #mlafix.dim<64>>, memref<?x128xbf16, strided<[?, 1], offset: ?>>
    // After
    mlafix.store_members(%even, %odd), %x[%t] : tensor<64xf32, #mlafix.dim<64>>, memref<?x128xbf16, strided<[?, 1], offset: ?>>
    ```
  }];
}

def SpillRowsPass : Pass<"mlafix-spill-rows", "::mlafix::KernelOp"> {
  let summary = "long rows that pass through control flow are kept in buffers";
  let description = [{
    Each block of the IR gets loops over packs of its own, which cannot use rows of other blocks. So a row that a loop
    carries, a branch yields, or a nested block uses is kept in a buffer on the stack. It is stored where it is computed
    and loaded where it is used. A buffer holds a lane's packs of the row. The pass changes only kernels whose plan
    says `row_loops`. A `mlafix.merge_loop` that carries such rows becomes a loop that merges each chunk,
    unless lane groups share it.

    ```mlir
    // Before
    %sum = scf.for %i = %c0 to %k step %c1 iter_args(%acc = %zeros) -> (tensor<4112xf32, #mlafix.dim<4112>>) {
      %next = arith.addf %acc, %part : …
      scf.yield %next : …
    }
    // After
    mlafix.store %zeros, %buffer[] : tensor<4112xf32, #mlafix.dim<4112>>, memref<4112xf32>
    scf.for %i = %c0 to %k step %c1 {
      %acc = mlafix.load %buffer[] : memref<4112xf32> -> tensor<4112xf32, #mlafix.dim<4112>>
      %next = arith.addf %acc, %part : …
      mlafix.store %next, %buffer[] : tensor<4112xf32, #mlafix.dim<4112>>, memref<4112xf32>
    }
    %sum = mlafix.load %buffer[] : memref<4112xf32> -> tensor<4112xf32, #mlafix.dim<4112>>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def LoopOverPacksPass : Pass<"mlafix-loop-over-packs", "::mlafix::KernelOp"> {
  let summary = "long rows become loops over packs";
  let description = [{
    A long row is walked in loops: one vector per pack would be tens of thousands of instructions. Reductions divide the
    ops of a row into stages. The scalars of a stage come first. Then one loop over the packs does everything that the
    stage does to rows of one length, scans included. On a GPU an iteration has several packs (`loop_elements`). A row that a later stage needs is kept in a buffer. A row that is
    too long for that (`kept_elements`) is read and computed again, if its memory is not written in between. Rows must
    not pass through a loop or branch (`mlafix-spill-rows`). The pass changes only kernels whose plan says `row_loops`.

    ```mlir
    // Before
    %v = mlafix.load %x[%t] : … -> tensor<4112xf32, #mlafix.dim<4112>>
    %w = arith.addf %v, %v : tensor<4112xf32, #mlafix.dim<4112>>
    mlafix.store %w, %x[%t] : …
    // After
    scf.for %i = %c0 to %c4112 step %c16 {
      %v = vector.load %x[%t, %i] : …, vector<16xf32>
      %w = arith.addf %v, %v : vector<16xf32>
      vector.store %w, %x[%t, %i] : …, vector<16xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlafix::MlafixThreadDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def RowsToPacksPass : Pass<"mlafix-rows-to-packs", "::mlafix::KernelOp"> {
  let summary = "row tiles become packs";
  let description = [{
    Each row tile becomes one vector per pack of the layout. Row reductions and scans become shuffles (and shared memory
    across warps); one lane stores scalars. The pass expects kernels whose grid has become threads or loops.

    ```mlir
    // Before, with #mlafix.layout<lanes = 16, packs = 2, pack = 4, rows = 16>
    %v = mlafix.load %x[%t] : … -> tensor<128xf32, #mlafix.dim<128>>
    %s = mlafix.reduce add %v : tensor<128xf32, #mlafix.dim<128>>
    // After
    %first = arith.muli %lane, %c4 : index
    %v0 = vector.load %x[%t, %first] : …, vector<4xf32>
    %second = arith.addi %first, %c64 : index
    %v1 = vector.load %x[%t, %second] : …, vector<4xf32>
    …
    %p0 = nvvm.shfl.sync bfly %mask, %mine, %c1, %c31 : f32 -> f32
    …
    %s = arith.addf %all0, %all1 : f32
    ```
  }];
  let options = [Option<"packs", "packs", "int64_t", "1 << 15", "of all rows of a lane, at most: each is a value, and this bounds the time that compiling takes">];
  let dependentDialects = [
    "::mlafix::MlafixThreadDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def InlineRowsPass : Pass<"mlafix-inline-rows", "::mlafix::KernelOp"> {
  let summary = "a row's program joins the thread's";
  let description = [{
    Replaces `mlafix_thread.row` by its ops. No later pass needs to know where a row's program begins or what its lane
    is.

    ```mlir
    // Before
    mlafix_thread.row lane %lane {
      vector.store %v, %x[%t, %first] : …
    }
    // After
    vector.store %v, %x[%t, %first] : …
    ```
  }];
}

#endif // MLAFIX_TRANSFORMS_ROWS_PASSES
