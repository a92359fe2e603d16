//===- Passes.td - passes from mlafix to mlafix -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_PASSES
#define MLAFIX_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

// What every pass takes whose decisions depend on the target.
class TargetOption : Option<"target", "target", "std::string", "\"\"", "a name that mlafix-opt --list-targets prints">;
class MachineOption : ListOption<"machine", "machine", "std::string", "NAME=VALUE: numbers to replace of what lib/Machine/MachineModel.def says of the target">;

def SpecializePass : Pass<"mlafix-specialize", "::mlir::ModuleOp"> {
  let summary = "bind the names of kernels: dims, dtypes, bases, optional arguments";
  let description = [{
    Replaces every upper-case dim by its size and every dtype variable by its type, in the arguments, the row tiles and the states of each
    kernel. A name that no kernel has, a name without a value and a value of the wrong kind are errors.

    The name of an optional argument may be bound to `absent` or `present`. An absent one is omitted at every launch:
    states loaded from it become identities, its other loads zeros where their predicate holds and `else` values
    elsewhere, as at a launch that omits it; its stores are erased, its access becomes `"absent"`; names that nothing
    else has need no value, nor does a dim of rows whose length nothing reads: no other argument has it, and no sum
    counts its elements. A present one is not optional any more.

    `--mlafix-specialize="bindings=H=128,D=128,T=bf16,out_lse=absent"`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [ListOption<"bindings", "bindings", "std::string", "NAME=VALUE, for each compile-time name">];
}

def MakeTotalPass : Pass<"mlafix-make-total", "::mlafix::KernelOp"> {
  let summary = "give integer arithmetic, conversions and loops a result for all operands";
  let description = [{
    What upstream's ops leave undefined for some operands is defined in a kernel, and the same on every target. This
    pass, which runs before the first one that folds, writes it out:

    - `arith.shli`, `shrui`, `shrsi`: a shift by the width or more leaves 0, an arithmetic one copies of the sign. The amount is taken as unsigned, so a
      negative one is such an amount.
    - `arith.divsi`, `divui`, `floordivsi`, `ceildivsi`, `ceildivui`: a / 0 is a, and the smallest integer over -1 wraps around; `remsi`, `remui`: a % 0 is 0.
    - `arith.fptosi`, `fptoui`: saturate; NaN becomes 0.
    - `arith.index_cast` of an index to a narrower integer keeps the low bits, also where it is cast back.
    - `scf.for`: the number of iterations is exact for all bounds, 0 where the range is empty. A loop whose step is not 1, or whose
      index has fewer than 64 bits, counts its iterations instead, so that nothing wraps. A constant step below 1 is an error, one that is known only at run time means no iteration.
    - Overflow flags, `exact` and fast-math flags are removed: nothing checks what they promise, and N9 and N10 hold for
      every operation of a kernel.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def FillOutputsPass : Pass<"mlafix-fill-outputs", "::mlafix::KernelOp"> {
  let summary = "write the fill where no store writes an output";
  let description = [{
    Of an output with `mlafix.fill`: whether a row has stored to it is a boolean that the branches around the stores yield; where it is false, a store at the row's end writes the fill. So the rest
    is all that it costs, and an output that is stored in any case costs nothing. The grid must be dense, all stores outside of loops and at the same indices of the grid, and these must run over
    just the output's rows (or, of stores of elements, its elements); other kernels are errors. The attribute is removed.

    ```mlir
    // Before, with {mlafix.fill = 0.0 : f32} on %out
    mlafix.store %v, %out[%t] if %p : f32, !vec
    // After
    mlafix.store %v, %out[%t] if %p : f32, !vec
    %left = arith.xori %p, %true : i1
    mlafix.store %zero, %out[%t] if %left : f32, !vec
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def ChunkMergesPass : Pass<"mlafix-chunk-merges", "::mlafix::KernelOp"> {
  let summary = "running merges become merges of chunks, which lane groups may share";
  let description = [{
    A loop that does nothing but merge states into the one it carries, as often as a launch knows beforehand, becomes `mlafix.merge_loop`: a chunk of `chunkIterations` iterations is merged by
    itself, with one common maximum, and then into the running state. The states of iterations past the end are the identity, so there is no loop for what is left, and chunks may be
    computed in any order and by any lanes. A loop of at most `unchunkedIterations` known iterations, which load `unchunkedBytes` at most, is left to `mlafix-unroll-loops`: a warp holds their rows at once. For GPUs.

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
    ```
  }];
  let options = [TargetOption<>, MachineOption<>];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def UnrollLoopsPass : Pass<"mlafix-unroll-loops", "::mlafix::KernelOp"> {
  let summary = "unroll the loops over rows, so that several rows are in flight";
  let description = [{
    On a GPU, a loop of at most 8 known iterations that reads rows is unrolled altogether, a longer one or one of unknown length four times. The merges of a
    running state then flatten into one (canonicalise), which needs one common maximum instead of four. A CPU reads ahead by itself.
    What is divided by four is the exact number of iterations, which is 0 for a range that is empty by any number of steps.
  }];
  let options = [TargetOption<>, MachineOption<>];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def SkipCopiesPass : Pass<"mlafix-skip-copies", "::mlafix::KernelOp"> {
  let summary = "neither read nor write rows that a merge in place leaves unchanged";
  let description = [{
    `store_state (merge %a, …, %s)` writes `%s` back to where it was read from when the kernel is called in place and the predicates of
    all other operands are false. Branches on that, known from the predicates and two pairs of pointers, around the loads and the store: such a row's payload
    is neither read nor written. Its lse is read all the same: a row that holds nothing becomes the identity (N3), one whose lse is NaN becomes NaN (N6).
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def DelayReadsPass : Pass<"mlafix-delay-reads", "::mlafix::KernelOp"> {
  let summary = "read a state's row once its lse is known, where the merge of two is stored in place";
  let description = [{
    Reading the rows that a merge in place replaces at once is slow on large tensors (docs/Experiments.md has the
    measurements). In a merge of two states that is stored to where one of them was loaded from, that state's row is
    loaded at one of two points: with everything else if the call is out of place or small, otherwise behind its lse,
    and not at all if the lse says that the state is empty. For GPUs.
  }];
  let options = [TargetOption<>, MachineOption<>];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def LowerStatesPass : Pass<"mlafix-lower-states", "::mlafix::KernelOp"> {
  let summary = "states become (maximum, sum, accumulator)";
  let description = [{
    A state becomes three values: the largest lse m (f32; -inf exactly when the state is empty), the sum s of the weights relative to m (f32),
    and the unnormalised accumulator (a row tile of f32). `merge` rescales its operands to the common maximum, with weights 2^((m_i - m) log2 b); a dead payload
    is replaced by -0.0, the neutral element of addition, before it is multiplied (N4, N5), and `store_state` divides once.
    The formulas are those of the online softmax (Milakov and Gimelshein, 2018). In a merge of two in base e, the power of two is multiplied by
    1 + what rounding took from its exponent, so that an error of the weights does not grow with the gap between two lse (N10).

    `store_state` divides by a sum of weights, which is at least 1 and at most the number of states: `arcp` on this division, and `afn` on the logarithm of the sum,
    say that an approximation which holds for such numbers will do. No other operation carries such a flag: a kernel's own divisions are correctly rounded.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def PlanLayoutPass : Pass<"mlafix-plan-layout", "::mlir::ModuleOp"> {
  let summary = "choose code versions and the layout of each";
  let description = [{
    Clones every kernel once per code version, fast ones first, and writes on each clone its guards (what the launch
    must check) and one `#mlafix.layout`. A GPU gets a code version with packs of up to 16 bytes (`fast`), guarded by
    the alignment of the tensors that it moves in packs and by a row count that fits 32-bit indices; before it the same
    for dense rows and scalars with identical strides, which needs few strides, out of place (`dense`) and, if outputs
    may be inputs, in place (`place`); and one without such guards (`any`). A CPU, where a row has one lane, gets a code
    version with streaming stores, for aligned outputs that are larger than the caches and no inputs (`streamed`), one
    that computes the scalars of 16 rows at once, for outputs that are no inputs, if there is enough to compute
    (`apart`), and one for all other calls (`any`). Also records the target and the kernel's signature on the module.
  }];
  let options = [
    TargetOption<>, MachineOption<>,
    Option<"variant", "variant", "std::string", "\"\"", "keep this code version only (dense, place, fast, any; on a CPU streamed, apart, any), to inspect its code">];
}

//===----------------------------------------------------------------------===//
// A dense or ragged grid to threads, for GPUs
//===----------------------------------------------------------------------===//

def GridToThreadsPass : Pass<"mlafix-grid-to-threads", "::mlafix::KernelOp"> {
  let summary = "a dense grid becomes arithmetic on thread and block indices";
  let description = [{
    `mlafix.forall` becomes the arithmetic from thread and block indices to row indices, and its body a `mlafix.row` under the guard that the row exists. Where the target has it,
    every thread waits for the preceding grid before the row's program. Where rows may be left alone, blocks 0, 1, 2, … take the places 0, n/2, 1, n/2 + 1, …, so that blocks
    with little to do run beside others. Records the launch geometry on the kernel. For layouts without lane groups.

    ```mlir
    // Before, with #mlafix.layout<lanes = 16, packs = 1, pack = 8, rows = 8>
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : …
    }
    // After
    %id = nvvm.read.ptx.sreg.tid.x : i32
    %group = arith.divui %id, %c16 : i32
    %lane = arith.index_castui (arith.andi %id, %c15) : i32 to index
    %mask = arith.shli %c65535, (arith.andi %id, %c16) : i32
    %row = arith.addi (arith.muli %block, %c8), %group : i32
    %isRow = arith.cmpi ult, %row, %rows : i32
    scf.if %isRow {
      mlafix.row lane %lane members %mask {
        %v = mlafix.load %x[%t] : …
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect"];
}

def GridToGroupsPass : Pass<"mlafix-grid-to-groups", "::mlafix::KernelOp"> {
  let summary = "a dense grid becomes groups of lanes that share merge loops";
  let description = [{
    Likewise, for layouts of lane groups, whose rows have merge loops. The lanes of a row do not synchronise, so the
    grid's lanes are numbered consecutively, independent of blocks; a block has as many groups of the same lanes as fit
    `group_threads`, a parameter of the launch's own, into its threads. All threads of a block take part in the exchange
    of chunks (`mlafix-lower-merge-loops`): those past the last row do the last row once more. The first group does what
    comes after the last merge loop.

    ```mlir
    // Before, with #mlafix.layout<lanes = 64, packs = 2, pack = 4, rows = 1, groups = 16>
    mlafix.forall (%t) in (%n) {
      %m, %s, %acc = mlafix.merge_loop …
      mlafix.store %out, %x[%t] : …
    }
    // After
    mlafix.row lane %lane groups(%group, %groups, %group_threads, %member) {
      %m, %s, %acc = mlafix.merge_loop …
      scf.if %isStored {
        mlafix.store %out, %x[%t] : …
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect"];
}

def RaggedToThreadsPass : Pass<"mlafix-ragged-to-threads", "::mlafix::KernelOp"> {
  let summary = "a ragged grid becomes a scan of its predicate and a loop over the selected rows";
  let description = [{
    Every block scans the predicate over all segments, a chunk of two segments a thread at a time; where none is selected, a chunk ends after one reduction. Otherwise the prefix
    sums of the selected segments' lengths go to shared memory, and blocks take the rows of these segments in turn. Scalars that only depend on indices are stored in a loop
    of their own, one thread each. Records the launch geometry on the kernel.

    ```mlir
    // Before
    mlafix.ragged_forall (%seg, %row, %h) in (%cu_seqlens, %n, %H) : … where {
      …
      mlafix.yield %dead : i1
    } do {
      mlafix.store %zeros, %out[%row, %h] : …
    }
    // After
    scf.for %chunk = %c0 to %segments step %c512 {
      …
      %any = nvvm.barrier #nvvm.reduction<or> %selected -> i32
      scf.if %isAny {
        …
        scf.for %tile = %first to %tiles step %blocks {
          mlafix.row lane %lane members %mask {
            mlafix.store %zeros, %out[%row, %h] : …
          }
        }
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def SeparateLanesPass : Pass<"mlafix-separate-lanes", "::mlafix::KernelOp"> {
  let summary = "lanes of a row wait for each other where one could overtake another";
  let description = [{
    Puts a barrier before each access of a row's program that may touch what another lane of the row has yet to read or write (N11): outputs may be inputs, so a store of one
    lane could otherwise overtake another lane's load of the same scalar. Accesses of rows alone need none: a lane meets its own elements only. For `mlafix.row`.

    ```mlir
    // Before
    mlafix.row lane %lane members %mask {
      mlafix.store %tile, %x[%t] : …
      %v = mlafix.load %x[%t, %i] : … -> f32
    }
    // After
    mlafix.row lane %lane members %mask {
      mlafix.store %tile, %x[%t] : …
      nvvm.bar.warp.sync %mask : i32
      %v = mlafix.load %x[%t, %i] : … -> f32
    }
    ```
  }];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
}

//===----------------------------------------------------------------------===//
// A grid to loops, for CPUs
//===----------------------------------------------------------------------===//

def BatchRowsPass : Pass<"mlafix-batch-rows", "::mlafix::KernelOp"> {
  let summary = "the scalars of many rows are computed at once";
  let description = [{
    In a layout of several rows, the scalars of so many rows along the outermost extent are computed first, as vectors, times up to `strip` along the inner ones, and kept in
    buffers until these rows are moved. What makes no whole batch is done row by row. Adds the arguments `begin` and `end`, the range of rows that a call has to do, and records the geometry.

    ```mlir
    // Before, with #mlafix.layout<lanes = 1, packs = 8, pack = 16, rows = 16>
    mlafix.forall (%t, %h) in (%n, %c48) {
      %w = math.exp2 %s : f32
      …
    }
    // After
    scf.for %base = %begin to %last step %c768 {
      scf.for %i = %c0 to %c48 step %c1 {
        %w = math.exp2 %s : vector<16xf32>
        …
        memref.store %w0, %buffer[%i] : memref<768xf32>
      }
      scf.for %lane = %c0 to %c16 step %c1 {
        scf.for %i = %c0 to %c48 step %c1 {
          %w = memref.load %buffer[%position] : memref<768xf32>
          …
        }
      }
    }
    scf.for %row = %last to %end step %c1 {…}
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def GridToLoopsPass : Pass<"mlafix-grid-to-loops", "::mlafix::KernelOp"> {
  let summary = "a grid becomes loops over a range of rows";
  let description = [{
    On a CPU a kernel does the rows of the range `[begin, end)` that two new arguments give, one lane each. Of a ragged grid, every call scans all segments and does those of
    their rows that lie in its range. Records the geometry.

    ```mlir
    // Before
    mlafix.forall (%t, %h) in (%n, %c16) {…}
    // After
    scf.for %row = %begin to %end step %c1 {
      %h = arith.remui %row, %c16 : index
      %t = arith.divui %row, %c16 : index
      …
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def PrefetchRowsPass : Pass<"mlafix-prefetch-rows", "::mlafix::KernelOp"> {
  let summary = "rows that come out of memory are prefetched";
  let description = [{
    In the loops of `mlafix-batch-rows`, prefetches the rows that follow in the tensors that no cache holds (a guard says which): what a CPU reads ahead by itself ends with
    a page. Whether they will be read is what is known of the row that is read now.

    ```mlir
    // Before
    %v = mlafix.load %x[%t, %h] if %in : …
    // After
    scf.if %in {
      memref.prefetch %x[%tAhead, %hAhead, %c0], read, locality<3>, data : …
    }
    %v = mlafix.load %x[%t, %h] if %in : …
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

//===----------------------------------------------------------------------===//
// Rows to packs
//===----------------------------------------------------------------------===//

def BufferRowsPass : Pass<"mlafix-buffer-rows", "::mlafix::KernelOp"> {
  let summary = "long rows that pass through control flow are kept in buffers";
  let description = [{
    A row that a loop carries, that a branch yields or that a nested block uses would tie the loops over packs of two blocks together. In a buffer on the stack, stored where it is
    made and loaded where it is used, it leaves each block with rows of its own alone. A buffer holds what a lane has of the row. For rows that
    `mlafix-loop-over-packs` walks.

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
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def LoopOverPacksPass : Pass<"mlafix-loop-over-packs", "::mlafix::KernelOp"> {
  let summary = "long rows become loops over packs";
  let description = [{
    A long row is walked in loops: one vector per pack would be tens of thousands of instructions. The ops of a row fall into stages with a reduction between two of them: the
    scalars of a stage come first, then one loop over the packs does all that the stage does to rows of one length. A row that a later stage needs is kept in a buffer. Rows must pass
    through no loop or branch (`mlafix-buffer-rows`).

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
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def RowsToPacksPass : Pass<"mlafix-rows-to-packs", "::mlafix::KernelOp"> {
  let summary = "row tiles become packs";
  let description = [{
    Each row tile becomes one vector per pack of the layout, row reductions become shuffles (and shared memory across warps), scalars are stored by one lane. Of a kernel whose
    grid has become threads or loops.

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
  let options = [Option<"packs", "packs", "int64_t", "1 << 15", "of all rows of a lane, at most: each is a value">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def UnswitchLoopsPass : Pass<"mlafix-unswitch-loops", "::mlafix::KernelOp"> {
  let summary = "what conditions decide for every pack of a row alike is decided once";
  let description = [{
    Puts a copy of a loop over the packs of a row before it for the rows that are there: where all predicates of its accesses hold, and no `select` puts a
    constant in a pack's place. For CPUs, which have no predicated loads that cost nothing.

    ```mlir
    // Before
    scf.for %i = %c0 to %c4112 step %c16 {
      %v = scf.if %p -> (vector<16xf32>) {…}
    }
    // After
    scf.if %p {
      scf.for %i = %c0 to %c4112 step %c16 {
        %v = scf.if %true -> (vector<16xf32>) {…}
      }
    } else {
      scf.for %i = %c0 to %c4112 step %c16 {
        %v = scf.if %p -> (vector<16xf32>) {…}
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def LowerMergeLoopsPass : Pass<"mlafix-lower-merge-loops", "::mlafix::KernelOp"> {
  let summary = "merge loops become loops over chunks, which lane groups share";
  let description = [{
    Makes an `scf.for` of `mlafix.merge_loop`, whose rows are packs. In a `mlafix.row` of lane groups, group g computes the chunks g, g + groups, …; where there is more than one
    group, they leave theirs in shared memory, and the first merges them in the order of one group alone.

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
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def InlineRowsPass : Pass<"mlafix-inline-rows", "::mlafix::KernelOp"> {
  let summary = "a row's program joins the thread's";
  let description = [{
    Moves the ops of `mlafix.row` to where it is. The last of the passes that need to know where a row's program begins and what its lane is.

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

def HoistLoadsPass : Pass<"mlafix-hoist-loads", "::mlafix::KernelOp"> {
  let summary = "issue loads before the arithmetic that could delay them";
  let description = [{
    Moves every load of a block, with the address computations it needs, before the first arithmetic that is none of these, as long as no store lies in between;
    loads without a predicate go first, since the branch around a predicated one ends what the assembler schedules together. A row's
    loads are then all in flight before the first value of any of them is waited for.
  }];
}

#endif // MLAFIX_TRANSFORMS_PASSES
