//===- Passes.td - code versions and their plans -----------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PLAN_PASSES
#define MLAFIX_PLAN_PASSES

include "lib/Transforms/PassOptions.td"

def PlanKernelPass : Pass<"mlafix-plan-kernel", "::mlir::ModuleOp"> {
  let summary = "choose code versions and the plan of each";
  let description = [{
    Clones every kernel once per code version, fast ones first, and writes on each clone its guards (what the launch
    must check) and one `#mlafix.plan`: the layout of its rows, and all else that is decided about it. The passes after it
    do what the plan says. Also records the target and the kernel's signature on the module.

    - A GPU gets `fast`, with packs of up to 16 bytes. Its guards are the alignment of the tensors that it moves in
      packs, and a row count that fits 32-bit indices.
    - Before it come versions for dense rows and scalars with identical strides, which need few strides and have packs
      of the widest access, 32 bytes from sm_100 on: `dense` out of place, and `place` in place if outputs may be inputs.
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
    Option<"variant", "variant", "std::string", "\"\"", "keep this code version only (dense, place, fast, any; on a CPU streamed, apart, any; of rows with a bound also most256_whole_dense and so on), to inspect its code">,
    ListOption<"fields", "plan", "std::string", "NAME=VALUE or VERSION.NAME=VALUE: fields of plans (dialect/PlanFields.def), or lanes or rows, that are given; without VERSION those of all code versions but any">];
}

#endif // MLAFIX_PLAN_PASSES
