//===- ExplainLayout.h - remarks on a code version's layout -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PLAN_EXPLAINLAYOUT_H
#define MLAFIX_PLAN_EXPLAINLAYOUT_H

#include "lib/Plan/ChooseLayout.h"

namespace mlafix {

/// Emits remarks about a code version with guards and a plan: the calls it
/// serves, how rows are distributed over lanes and blocks, and which rows are
/// accessed in narrower pieces than the machine supports.
void explainLayout(KernelOp version, const MachineModel &machine);

} // namespace mlafix

#endif // MLAFIX_PLAN_EXPLAINLAYOUT_H
