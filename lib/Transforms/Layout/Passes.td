//===- Passes.td - rows of one element a group ------------*- tablegen -*-===//
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
    So does each row that is combined with it in an elementwise op, a loop or a branch. The layout of such a row then
    follows the row of groups: each lane has the elements of the groups whose packs it holds. A row that is combined
    with groups of two sizes is an error. If the elements of a row along G are not adjacent in memory, all rows along G
    get that type and are accessed element by element.

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

#endif // MLAFIX_TRANSFORMS_LAYOUT_PASSES
