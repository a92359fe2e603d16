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

/// Emits remarks about a code version that has guards and a plan. The remarks
/// name the calls that the version serves, the distribution of rows over lanes
/// and blocks, and the rows that are accessed more narrowly than the machine
/// allows.
void explainLayout(KernelOp version, const MachineModel &machine);

} // namespace mlafix

#endif // MLAFIX_PLAN_EXPLAINLAYOUT_H
