//===- Passes.td - when loads are issued -------------------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LOADS_PASSES
#define MLAFIX_TRANSFORMS_LOADS_PASSES

include "lib/Transforms/PassOptions.td"

def DelayReadsPass : Pass<"mlafix-delay-reads", "::mlafix::KernelOp"> {
  let summary = "read a state's row once its lse is known, where the merge of two is stored in place";
  let description = [{
    If a merge in place replaces a row of a large tensor, it is slow to load this row together with everything else
    (docs/Experiments.md has the measurements). If a merge of two states is stored over one of them, the row of that
    state is loaded at one of two points. If the call is out of place or small, the row is loaded with everything else.
    Otherwise it is loaded after its lse, and not at all if the lse says that the state is empty. For GPUs.
  }];
  let options = [TargetOption<>, MachineOption<>];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def HoistLoadsPass : Pass<"mlafix-hoist-loads", "::mlafix::KernelOp"> {
  let summary = "issue loads before the arithmetic that could delay them";
  let description = [{
    Moves every load of a block, with its address computations, before the first other arithmetic, unless a store lies
    in between. Loads without a predicate go first: the branch around a predicated load ends what the assembler
    schedules together. Prefetches for a later block follow. All of a row's loads are then in flight before the first value
    is waited for.

    While rows are still tiles, the pass moves loads of scalars before the first reduction of a row, since warps wait
    for each other in a reduction.
  }];
}

def PrefetchRowsPass : Pass<"mlafix-prefetch-rows", "::mlafix::KernelOp"> {
  let summary = "a CPU prefetches rows of tensors that no cache holds";
  let description = [{
    In the loops of `mlafix-lower-grid`, prefetches the following rows of tensors that no cache holds (a guard says
    which): the CPU's own prefetcher stops at the end of a page. A following row is prefetched if the current row is
    read.

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

def UnswitchLoopsPass : Pass<"mlafix-unswitch-loops", "::mlafix::KernelOp"> {
  let summary = "what conditions decide for every pack of a row alike is decided once";
  let description = [{
    Puts a copy of a loop over the packs of a row before the loop, for rows on which all predicates of its accesses hold
    and no `select` replaces a pack by a constant. For CPUs, which have no free predicated loads.

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

def OverlapGridsPass : Pass<"mlafix-overlap-grids", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "rows are prefetched before the wait for the preceding grid, and the next one is let begin between loads";
  let description = [{
    Has a thread compute the addresses of its first loads while it waits for the preceding grid. The pass moves that
    arithmetic before the wait. Between the two, it puts an `exit` that needs the results of the arithmetic and is never
    taken. Without the `exit`, ptxas issues the wait first in its basic block, which cost 8% of a merge of 16 tokens in
    a chain of launches on an H200. A row's packs have addresses that differ by constants, which loads add by
    themselves, so one address suffices.

    Data loaded after the wait (in loops, by the first iteration) is also prefetched into the second-level cache before
    the wait. Memory is coherent there, so a line that the preceding grid has yet to write may be fetched early. Only
    the first threads of a grid prefetch their rows, as many as move the plan's `early_bytes`, unless the grid has at
    most `early_threads`: then all do. Memory has no time for more rows before the preceding grid ends, so it would load
    them twice. The first block prefetches what every block loads. If the plan has `early_line_bytes`, the first of the
    lanes that load from a cache line prefetches it for the others. If a thread has `early_first_packs` packs or more,
    it prefetches them at once, ahead of other addresses and of barriers, so that their lines have arrived by the time
    that the preceding grid ends.

    A prefetch of another device's memory, or of the host's, goes over the link and is slow, and the load then waits for
    it. A kernel that prefetches has a parameter `local`: the launch says whether everything that it reads is in the
    memory of its own device.

    ```mlir
    // Before
    nvvm.griddepcontrol wait
    %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %v = llvm.load %p : !llvm.ptr<1> -> vector<8xbf16>
    // After
    %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %address = llvm.ptrtoint %p : !llvm.ptr<1> to i64
    %prefetches = llvm.and %isLocal, %isEarly : i1
    scf.if %prefetches {
      llvm.inline_asm has_side_effects "prefetch.global.L2 [$0];", "l,~{memory}" %p : (!llvm.ptr<1>) -> ()
    }
    llvm.inline_asm has_side_effects "{… @none exit; griddepcontrol.wait; }", "l,~{memory}" %address : (i64) -> ()
    %v = llvm.load %p : !llvm.ptr<1> -> vector<8xbf16>
    ```

    For all of this, `mlafix_thread.predicated_load` counts as a load. At the end of the pass, it becomes PTX.

    If a load's address comes from another load, the index is loaded first. Then come the loads of packs whose addresses
    need no memory, then `griddepcontrol.launch_dependents`, then the rest: ptxas moves no load across this instruction.
    Without it, ptxas 13.0 issues one of the loads of packs, waits for the index, and then issues the rest, so that half
    of a row's loads wait for one load. ptxas waits for the index before `griddepcontrol.launch_dependents`, so the next
    grid begins when the index is there.

    The next grid begins at once if this grid prefetches all of its rows, or all of its first chunks, before the wait.
    If there are more first chunks than that, and they are loaded ahead of merge loops (`mlafix-lower-merge-loops`), the
    next grid begins after these loads, because its prefetches would compete with them.

    ```mlir
    // Before
    nvvm.griddepcontrol launch_dependents
    scf.if %isRow {
      %a = llvm.load %p : !llvm.ptr<1> -> vector<8xbf16>
      %i = llvm.load %place : !llvm.ptr<1> -> i64
      %q = llvm.getelementptr %table[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
      %c = llvm.load %q : !llvm.ptr<1> -> vector<8xbf16>
    }
    // After
    scf.if %isPrefetched { nvvm.griddepcontrol launch_dependents }
    scf.if %isRow {
      %i = llvm.load %place : !llvm.ptr<1> -> i64
      %a = llvm.load %p : !llvm.ptr<1> -> vector<8xbf16>
      llvm.inline_asm has_side_effects "griddepcontrol.launch_dependents;", "~{memory}" : () -> ()
      %q = llvm.getelementptr %table[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
      %c = llvm.load %q : !llvm.ptr<1> -> vector<8xbf16>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // MLAFIX_TRANSFORMS_LOADS_PASSES
