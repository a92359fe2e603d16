//===- AllPasses.td - what Passes.h.inc is made of ----------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

include "lib/Transforms/Passes.td"
include "lib/Transforms/GPU/Passes.td"
include "lib/Transforms/CPU/Passes.td"
