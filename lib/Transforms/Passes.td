//===- Passes.td - passes from mlafix to mlafix ------------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

include "lib/Transforms/Language/Passes.td"
include "lib/Transforms/States/Passes.td"
include "lib/Transforms/Layout/Passes.td"
include "lib/Transforms/Grid/Passes.td"
include "lib/Transforms/Merges/Passes.td"
include "lib/Transforms/Barriers/Passes.td"
include "lib/Transforms/Rows/Passes.td"
include "lib/Transforms/Loads/Passes.td"
include "lib/Transforms/Floats/Passes.td"
