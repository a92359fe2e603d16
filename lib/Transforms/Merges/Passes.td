//===- Passes.td - merge loops -----------------------------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_MERGES_PASSES
#define MLAFIX_TRANSFORMS_MERGES_PASSES

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

def LowerMergeLoopsPass : Pass<"mlafix-lower-merge-loops", "::mlafix::KernelOp"> {
  let summary = "merge loops become loops over chunks, which lane groups share";
  let description = [{
    `mlafix.merge_loop`, whose rows are packs, becomes an `scf.for`. In a `mlafix_thread.row` of lane groups, group g
    computes the chunks g, g + groups, …. If there is more than one group, they store their chunks in shared memory, and
    the first group merges them in the order of a single group.

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
    or if a lane would hold more than the plan's `chunk_ahead_bytes` of the next chunk. If a preceding loop finds the
    largest lse, that loop loads its lses ahead, too. It moves behind the first chunk's loads, so that these are in
    flight while the groups wait for each other after that loop. Loads of f32 of the plan's `streamed_bytes` without
    masks are `nontemporal`: the caches drop their lines first.

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

def SkipZeroWeightAddsPass : Pass<"mlafix-skip-zero-weight-adds", "::mlafix::KernelOp"> {
  let summary = "a sum stays as it is where the factor of what is added is 0";
  let description = [{
    The payload of a state with weight 0 is replaced by -0.0 before it is added (N5). This pass instead keeps the
    previous sum where the weight is 0. The number is the same, and a predicated addition gives it, so a GPU needs no
    select per element. Not for targets that compute with two f32 at once, where it saves no selections.

    If neither of two states has a payload, the merged row is 0. If a kernel computes with such rows, of 8 elements or
    more per lane, the selections of their elements are removed, too: both payloads are then -0.0, and the factors of
    the first payload and of the sum become 1 and -1.

    ```mlir
    // Before
    %payload = arith.select %isZero, %minusZeros, %x : vector<8xf32>
    %sum = math.fma %weights, %payload, %before : vector<8xf32>
    // After
    %more = math.fma %weights, %x, %before : vector<8xf32>
    %sum = arith.select %isZero, %before, %more : vector<8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif // MLAFIX_TRANSFORMS_MERGES_PASSES
