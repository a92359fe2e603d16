//===- Passes.td - layouts and code versions ---------------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LAYOUT_PASSES
#define MLAFIX_TRANSFORMS_LAYOUT_PASSES

include "lib/Transforms/PassOptions.td"

def GroupRowsPass : Pass<"mlafix-group-rows", "::mlafix::KernelOp"> {
  let summary = "rows of one element a group follow the layout of the groups";
  let description = [{
    A row along G that is broadcast over groups of K elements, or results from their reduction, gets the type `G per K`.
    So does each row that is combined with it in an elementwise op, a loop or a branch. Its layout then follows the row
    of groups: each lane has the elements of the groups of which it has packs. A row that is combined with groups of two
    sizes is an error. If the elements of a row along G are not adjacent in memory, all rows along G get that type and
    are accessed element by element.

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
    must check) and one `#mlafix.layout`. Also records the target and the kernel's signature on the module.

    - A GPU gets `fast`, with packs of up to 16 bytes. Its guards are the alignment of the tensors that it moves in
      packs, and a row count that fits 32-bit indices.
    - Before it comes the same for dense rows and scalars with identical strides, which needs few strides: `dense` out
      of place, and `place` in place if outputs may be inputs.
    - `any` has no such guards.
    - Rows along a dim with a bound get the same for sizes that are multiples of packs, `whole_dense` and `whole_place`.
      Where they move single elements, `dense` and `place` gain nothing and are not there.
    - Before those, large bounds get code versions for smaller ones: `most256_whole_dense`, `most256_fast` and so on,
      with the lanes of their bound.
    - A CPU, where a row has one lane, gets `streamed`, with streaming stores, for aligned outputs that are larger than
      the caches and are no inputs.
    - `apart` computes the scalars of 16 rows at once, for outputs that are no inputs, if there is enough to compute.
      `any` is for all other calls.
  }];
  let options = [
    TargetOption<>, MachineOption<>,
    Option<"variant", "variant", "std::string", "\"\"", "keep this code version only (dense, place, fast, any; on a CPU streamed, apart, any; of rows with a bound also most256_whole_dense and so on), to inspect its code">];
}

#endif // MLAFIX_TRANSFORMS_LAYOUT_PASSES
