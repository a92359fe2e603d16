//===- Passes.td - passes from mlafix to mlafix ------------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Those for every target; GPU/Passes.td and CPU/Passes.td have the others.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_PASSES
#define MLAFIX_TRANSFORMS_PASSES

include "lib/Transforms/PassOptions.td"

def SpecializePass : Pass<"mlafix-specialize", "::mlir::ModuleOp"> {
  let summary = "bind the names of kernels: dims, dtypes, bases, optional arguments";
  let description = [{
    Replaces every upper-case dim by its size and every dtype variable by its type, in the arguments, the row tiles and the states of each
    kernel. A name that no kernel has, a name without a value and a value of the wrong kind are errors. A variable may be bound to a dtype of any kind
    if the body only moves its elements: they are loaded, chosen from, and stored to elements of the same variable, and 0 is the one number
    stored beside them. Those of a variable of floats become integers (i64) for that, unless it is bound to f32. Then their bits are moved. Sinks leave the types of states: that each counts once is verified.

    The name of an optional argument may be bound to `absent` or `present`. An absent one is omitted at every launch:
    states loaded from it become identities, its other loads zeros where their predicate holds and `else` values
    elsewhere, as at a launch that omits it; its stores are erased, its access becomes `"absent"`; names that nothing
    else has need no value, nor does a dim of rows whose length nothing reads: no other argument has it, and no sum or
    iota counts its elements. A present one is not optional any more.

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
    - `arith.minnumf`, `maxnumf`: -0.0 is less than 0.0.
    - `math.sin`, `cos` of more than 2^23, which targets do not compute: NaN.
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

def RepairMergesPass : Pass<"mlafix-repair-merges", "::mlafix::KernelOp"> {
  let summary = "merge again what is not finite, each state weighed once";
  let description = [{
    A running merge scales what it has merged whenever an lse is larger than all before. An infinity or NaN of a payload survives each of these factors, although the
    weight of its state in the whole may be zero (N5). So where an element of the result is not finite, a branch merges the states once more, each weighed against the largest lse, which is known by then, and nothing is scaled. All other
    elements stay as they are; a row of finite elements takes one comparison.

    So it is for loops that merge into the one state they carry, for loops in such loops, and for merges of what they give, wherever the payload is used. A loop that computes its lses
    from rows, that stores, or that carries other values too is left as it is, and so is a loop that `mlafix-unroll-loops` will unroll altogether: its merges become one.

    ```mlir
    // Before
    %all = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %none) -> (!mlafix.state<"D", e>) {
      %part = mlafix.load_state %x[%k, %h] lse %lse[%h, %k] : …
      %sum = mlafix.merge %acc, %part : !mlafix.state<"D", e>
      scf.yield %sum : !mlafix.state<"D", e>
    }
    // After, behind the loop
    %bad = mlafix.has_nonfinite %all : !mlafix.state<"D", e>
    %whole = scf.if %bad -> (!mlafix.state<"D", e>) {
      %max = mlafix.max_of %all : !mlafix.state<"D", e>
      %first = mlafix.reference %max : !mlafix.state<"D", e>
      %again = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %first) -> (!mlafix.state<"D", e>) {
        %part = mlafix.load_state %x[%k, %h] lse %lse[%h, %k] : …
        %sum = mlafix.merge to_first %acc, %part : !mlafix.state<"D", e>
        scf.yield %sum : !mlafix.state<"D", e>
      }
      %repaired = mlafix.repair %all, %again : !mlafix.state<"D", e>
      scf.yield %repaired : !mlafix.state<"D", e>
    } else {
      scf.yield %all : !mlafix.state<"D", e>
    }
    ```
  }];
  let options = [TargetOption<>, MachineOption<>];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect"];
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

    `mlafix.arg_reduce` becomes two reductions: of the row, and of the indices at which the extreme or a NaN is, to the least of them.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect"];
}

def GroupRowsPass : Pass<"mlafix-group-rows", "::mlafix::KernelOp"> {
  let summary = "rows of one element a group follow the layout of the groups";
  let description = [{
    A row along G that is broadcast over groups of K elements, or comes of their reduction, gets the type that says so, `G per K`, and so does each row that it meets in an elementwise op, a loop or
    a branch. From then on its layout is that of the row of groups: each lane has the elements of those groups that it has packs of. A row that meets groups of two sizes is an error. In
    memory where elements of a row along G do not lie one behind another, all rows get that type: they are moved element by element.

    ```mlir
    // Before
    %s = mlafix.load %scales[%t] : … -> tensor<4xf32, #mlafix.dim<4>>
    %b = mlafix.broadcast %s : tensor<4xf32, #mlafix.dim<4>> -> tensor<512xf32, #mlafix.dim<4 x 128>>
    // After
    %s = mlafix.load %scales[%t] : … -> tensor<4xf32, #mlafix.dim<4 per 128>>
    %b = mlafix.broadcast %s : tensor<4xf32, #mlafix.dim<4 per 128>> -> tensor<512xf32, #mlafix.dim<4 x 128>>
    ```
  }];
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

def JoinMembersPass : Pass<"mlafix-join-members", "::mlafix::KernelOp"> {
  let summary = "stores of all members of a row become one store";
  let description = [{
    A member of each group of a row is scattered: of pairs, every second element. Where one block stores all members of a row, under one predicate, and touches the tensor nowhere between the first
    and the last of these stores, one store of whole groups takes their place, which a lane does in wide accesses. Loads need no such pass: the load of a member reads whole groups, and the loads of
    other members read the same.

    ```mlir
    // Before
    mlafix.store %even, %x[%t] member %c0 : tensor<64xf32, #mlafix.dim<64>>, memref<?x128xbf16, strided<[?, 1], offset: ?>>
    mlafix.store %odd, %x[%t] member %c1 : tensor<64xf32, #mlafix.dim<64>>, memref<?x128xbf16, strided<[?, 1], offset: ?>>
    // After
    mlafix.store_members(%even, %odd), %x[%t] : tensor<64xf32, #mlafix.dim<64>>, memref<?x128xbf16, strided<[?, 1], offset: ?>>
    ```
  }];
}

def BufferRowsPass : Pass<"mlafix-buffer-rows", "::mlafix::KernelOp"> {
  let summary = "long rows that pass through control flow are kept in buffers";
  let description = [{
    A row that a loop carries, that a branch yields or that a nested block uses would tie the loops over packs of two blocks together. In a buffer on the stack, stored where it is
    made and loaded where it is used, it leaves each block with rows of its own alone. A buffer holds what a lane has of the row. For rows that
    `mlafix-loop-over-packs` walks. A `mlafix.merge_loop` that carries such rows becomes a loop that merges each chunk, unless lane groups share it.

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
    A long row is walked in loops: one vector per pack would be tens of thousands of instructions. The ops of a row fall into stages with a reduction between two of them: the
    scalars of a stage come first, then one loop over the packs does all that the stage does to rows of one length; a scan is part of that loop. A row that a later stage needs is kept in a buffer; one that is too long for that is read and computed again, if its memory is not written in between. Rows must pass
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
    Each row tile becomes one vector per pack of the layout, row reductions and scans become shuffles (and shared memory across warps), scalars are stored by one lane. Of a kernel whose
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
  let options = [Option<"packs", "packs", "int64_t", "1 << 15", "of all rows of a lane, at most: each is a value, and this bounds the time that compiling takes">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
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
