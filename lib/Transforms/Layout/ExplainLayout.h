//===- ExplainLayout.h - remarks on a code version's layout -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LAYOUT_EXPLAINLAYOUT_H
#define MLAFIX_TRANSFORMS_LAYOUT_EXPLAINLAYOUT_H

#include "lib/Transforms/Layout/ChooseLayout.h"

namespace mlafix {

/// Remarks on a code version that has its guards and its layout: for which
/// calls it is, how a row is distributed over lanes and rows over a block, and
/// which rows are moved in narrower accesses than the machine has.
void explainLayout(KernelOp version, const MachineModel &machine,
                   const RowShape &shape, AliasMode aliasMode);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_EXPLAINLAYOUT_H
