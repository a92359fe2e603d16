//===- Passes.td - passes for GPUs -------------------------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GPU_PASSES
#define MLAFIX_TRANSFORMS_GPU_PASSES

include "lib/Transforms/PassOptions.td"

def ChunkMergesPass : Pass<"mlafix-chunk-merges", "::mlafix::KernelOp"> {
  let summary = "running merges become merges of chunks, which lane groups may share";
  let description = [{
    A loop that only merges states into the state it carries, with a number of iterations that a launch knows
    beforehand, becomes `mlafix.merge_loop`. It merges a chunk of `chunkIterations` iterations with one common maximum,
    and then merges the chunk into the running state. States of iterations past the end are the identity, so no loop
    remains for the rest. Chunks may be computed in any order and by any lanes. A loop of at most `unchunkedIterations`
    known iterations that loads at most `unchunkedBytes` is left to `mlafix-unroll-loops`: a warp holds all of its rows.
    For GPUs.

    If an iteration loads rows of at least `weighedOnceElements`, and its lses do not depend on rows, a loop that finds
    the largest lse is put first. Each state is then weighed once, against that lse, and chunks are added.

    ```mlir
    // Before
    %all = scf.for %k = %c0 to %s step %c1 iter_args(%acc = %none) -> (!mlafix.state<"D", e>) {
      %part = mlafix.load_state %partial[%k, %h] lse %partial_lse[%k, %h] : …
      %sum = mlafix.merge %acc, %part : !mlafix.state<"D", e>
      scf.yield %sum : !mlafix.state<"D", e>
    }
    // After, with machine=chunkIterations=2
    %all = mlafix.merge_loop %k = %c0 to %s step 2 init(%none) : !mlafix.state<"D", e> {
      %left = arith.subi %s, %k : index
      %p0 = mlafix.load_state %partial[%k, %h] lse %partial_lse[%k, %h] if %exists0 : …
      %p1 = mlafix.load_state %partial[%k1, %h] lse %partial_lse[%k1, %h] if %exists1 : …
      %chunk = mlafix.merge %p0, %p1 : !mlafix.state<"D", e>
      mlafix.yield %chunk : !mlafix.state<"D", e>
    }
    // After, where the largest lse comes first
    %most = mlafix.merge_loop %k = %c0 to %s step 2 init(%least) : f32 {
      …
      mlafix.yield %larger : f32
    }
    %first = mlafix.reference %most : !mlafix.state<"D", e>
    %all = mlafix.merge_loop to_first %k = %c0 to %s step 2 init(%first) : !mlafix.state<"D", e> {
      …
      %chunk = mlafix.merge to_first %first, %p0, %p1 : !mlafix.state<"D", e>
      mlafix.yield %chunk : !mlafix.state<"D", e>
    }
    ```
  }];
  let options = [TargetOption<>, MachineOption<>];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def DelayReadsPass : Pass<"mlafix-delay-reads", "::mlafix::KernelOp"> {
  let summary = "read a state's row once its lse is known, where the merge of two is stored in place";
  let description = [{
    On large tensors it is slow to read a row that a merge in place replaces together with everything else
    (docs/Experiments.md has the measurements). If a merge of two states is stored over one of them, the row of that
    state is loaded at one of two points. If the call is out of place or small, it is loaded with everything else.
    Otherwise it is loaded after its lse, and not at all if the lse says that the state is empty. For GPUs.
  }];
  let options = [TargetOption<>, MachineOption<>];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def PlaceCollectivesPass : Pass<"mlafix-place-collectives", "::mlafix::KernelOp"> {
  let summary = "the ranks of a collective kernel wait for each other";
  let description = [{
    A kernel may read other ranks' tensors (`mlafix.peers`) once the ranks' preceding grids have completed. It must not
    end before all ranks have read what it, or the next grid, may overwrite. So each block waits for the ranks before
    the row's program, and the last block to end releases their memory. If a rank has not arrived by the time the block
    has read everything, a copy of the program stores the results instead. It computes them as if all elements of the
    peers' tensors were NaN (for integers, all bits set). The copy reads no peer's memory. For GPUs; on a CPU all
    tensors belong to one process.

    A row with `mlafix.exchange` becomes two programs. The first has the ops before the exchange, which store to the
    peers. The second runs once the same block of each rank has stored. It has the ops after the exchange, and those
    before it that they need. Nothing waits at the end: the next launch stores elsewhere (`mlafix.turn`), and the one
    after that begins only once this rank has completed this one. Rows put scalars for the peers into shared memory, and
    neighbouring threads store those of neighbouring rows together: a link takes about as long for 4 bytes as for 128.

    ```mlir
    // Before
    mlafix.row lane %lane {
      %v = mlafix.load %parts[%r, %t] : …
      mlafix.store %v, %out[%t] : …
    }
    // After
    %arrived = mlafix.wait_peers : i1
    scf.if %arrived {
      mlafix.row lane %lane {
        %v = mlafix.load %parts[%r, %t] : …
        mlafix.store %v, %out[%t] : …
      }
    }
    %valid = mlafix.release_peers %arrived : i1
    %isMarked = arith.xori %valid, %true : i1
    scf.if %isMarked {
      mlafix.row lane %lane {
        mlafix.store %nan, %out[%t] : …
      }
    }

    // Before
    mlafix.row lane %lane {
      %turn = mlafix.turn : index
      mlafix.store %v, %parts[%r, %turn, %t] : …
      mlafix.exchange
      %w = mlafix.load %parts[%rank, %turn, %t] : …
      mlafix.store %w, %out[%t] : …
    }
    // After
    %turn, %sends = mlafix.begin_exchange : index, i1
    mlafix.row lane %lane {
      mlafix.store %v, %parts[%r, %turn, %t] if %sends : …
    }
    %arrived = mlafix.end_exchange %sends : i1
    scf.if %arrived {
      mlafix.row lane %lane {
        %w = mlafix.load %parts[%rank, %turn, %t] : …
        mlafix.store %w, %out[%t] : …
      }
    } else {
      mlafix.row lane %lane {
        mlafix.store %nan, %out[%t] : …
      }
    }
    ```
  }];
  let dependentDialects = [
      "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
      "::mlir::scf::SCFDialect"];
}

def SeparateLanesPass : Pass<"mlafix-separate-lanes", "::mlafix::KernelOp"> {
  let summary = "lanes of a row wait for each other where one could overtake another";
  let description = [{
    Puts a barrier before each access of a row's program that may touch what another lane of the row has yet to read or
    write (N11). Outputs may be inputs, so a lane's store could otherwise overtake another lane's load of the same
    scalar. Accesses to rows need no barrier among themselves: a lane touches only its own elements. For `mlafix.row`.

    ```mlir
    // Before
    mlafix.row lane %lane mask %mask {
      mlafix.store %tile, %x[%t] : …
      %v = mlafix.load %x[%t, %i] : … -> f32
    }
    // After
    mlafix.row lane %lane mask %mask {
      mlafix.store %tile, %x[%t] : …
      nvvm.bar.warp.sync %mask : i32
      %v = mlafix.load %x[%t, %i] : … -> f32
    }
    ```
  }];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
}

def LowerMergeLoopsPass : Pass<"mlafix-lower-merge-loops", "::mlafix::KernelOp"> {
  let summary = "merge loops become loops over chunks, which lane groups share";
  let description = [{
    `mlafix.merge_loop`, whose rows are packs, becomes an `scf.for`. In a `mlafix.row` of lane groups, group g computes
    the chunks g, g + groups, …. If there is more than one group, they store their chunks in shared memory, and the
    first group merges them in the order that one group alone has.

    In a merge loop of numbers, lanes known to share a row take one chunk each. The largest number is then found by
    shuffles or, if there are several groups, by an atomic maximum in shared memory, of integers with the order of the
    numbers.

    ```mlir
    // Before
    %all:3 = mlafix.merge_loop %k = %c0 to %n step 4 init(%m, %s, %acc) : f32, f32, vector<4xf32> attributes {base = #mlafix.base<e>} {
      …
      mlafix.yield %cm, %cs, %cacc : f32, f32, vector<4xf32>
    }
    // After, without groups
    %all:3 = scf.for %k = %c0 to %n step %c4 iter_args(%rm = %m, %rs = %s, %racc = %acc) -> (f32, f32, vector<4xf32>) {
      …
      %max = arith.maximumf %rm, %cm : f32
      …
      scf.yield %max, %sum, %sums : f32, f32, vector<4xf32>
    }
    ```

    Memory is idle while lane groups exchange their chunks and merge them. So a loop that groups share loads the next
    chunk before it merges the current one, if there is a next one, and the first chunk before the loop. A chunk whose
    iterations all exist is loaded without masks. A loop stays as it is if the addresses of its loads come from memory,
    or if a lane would hold more than the plan's `chunk_ahead_bytes` of them. The loop in front of it that finds the
    largest lse loads its lses ahead too, and moves behind the first chunk's loads, because groups wait for each other
    in it. Loads of f32 of the plan's `streamed_bytes` without masks are `nontemporal`: the caches drop their lines
    first.

    A launch whose groups have at most one chunk each takes separate code without loops, one version for several groups
    and one for a single group, if the plan says so (`single_chunk`) and the loop's body has at most 512 ops. The
    largest lse is then computed from the lses that are loaded with the rows; no others are loaded.

    ```mlir
    // Before
    %r = scf.for %k = %c0 to %n step %c4 iter_args(%m = %m0) -> (f32) {
      %v = vector.maskedload %x[%k], %mask, %zero : …
      %chunk = …
      %next = scf.if %shared -> (f32) {…} else {…}
      scf.yield %next : f32
    }
    // After
    %first = scf.if %exists -> (vector<1xf32>) {…}
    %r:3 = scf.for %k = %c0 to %n step %c4 iter_args(%m = %m0, %v = %first, %at = %c4) -> (f32, vector<1xf32>, index) {
      %chunk = …
      %isAny = arith.cmpi slt, %at, %n : index
      %ahead = scf.if %isAny -> (vector<1xf32>) {…} else {ub.poison…}
      %next = scf.if %shared -> (f32) {…} else {…}
      scf.yield %next, %ahead, %after : f32, vector<1xf32>, index
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect", "::mlir::vector::VectorDialect"];
}

def InlineRowsPass : Pass<"mlafix-inline-rows", "::mlafix::KernelOp"> {
  let summary = "a row's program joins the thread's";
  let description = [{
    Replaces `mlafix.row` by its ops. No later pass needs to know where a row's program begins or what its lane is.

    ```mlir
    // Before
    mlafix.row lane %lane {
      vector.store %v, %x[%t, %first] : …
    }
    // After
    vector.store %v, %x[%t, %first] : …
    ```
  }];
}

#endif // MLAFIX_TRANSFORMS_GPU_PASSES
