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
    Clones every kernel once per code version, fast ones first. Each clone gets its guards (the conditions that the
    launch must check) and one `#mlafix.plan`: the layout of its rows and all other decisions about the version. The
    passes after it follow the plan. Also records the target and the kernel's signature on the module.

    - `fast` (GPU) has packs of up to 16 bytes. Its guards require aligned tensors, as far as they are moved in packs,
      and a number of rows that fits 32-bit indices.
    - `dense` and `place` (GPU) precede it. They are for dense rows and scalars with identical strides. They need few
      strides, and have packs of the widest access, 32 bytes from sm_100 on. `dense` works out of place. `place` works
      in place; it exists if outputs may be inputs.
    - `dense_few` (GPU) precedes `dense` if a loop computes much on the rows that it loads. It is for launches of few
      rows. `dense` then has half as many lanes, each with two packs, so that fewer lanes exchange values. `place` and
      `fast` keep one pack.
    - `any` has none of these guards.
    - `whole_dense` and `whole_place` are the same for rows along a dim with a bound whose size is a multiple of the
      pack. If `dense` and `place` would move such rows by single elements, they gain nothing and are omitted.
    - `most256_whole_dense`, `most256_fast` and so on precede them if a bound is large. They are for a smaller bound,
      and have the lanes of that bound.
    - `streamed` (CPU, where a row has one lane) uses streaming stores. It is for aligned outputs that are larger than
      the caches and are not inputs.
    - `apart` (CPU) computes the scalars of 16 rows at once. It is for outputs that are not inputs, and exists if there
      is enough to compute. `any` serves all other calls.
  }];
  let options = [
    TargetOption<>, MachineOption<>,
    Option<"variant", "variant", "std::string", "\"\"", "keep this code version only (dense_few, dense, place, fast, any; on a CPU streamed, apart, any; of rows with a bound also most256_whole_dense and so on), to inspect its code">,
    ListOption<"fields", "plan", "std::string", "NAME=VALUE or VERSION.NAME=VALUE: fields of plans (dialect/PlanFields.def), or lanes, rows or parts, that are given; without VERSION those of all code versions but any">];
}

#endif // MLAFIX_PLAN_PASSES
