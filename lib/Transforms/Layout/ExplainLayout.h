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

/// Emits remarks about a code version with guards and layout: the calls it
/// serves, how rows are distributed over lanes and blocks, and which rows are
/// accessed in narrower pieces than the machine supports.
void explainLayout(KernelOp version, const MachineModel &machine,
                   const RowShape &shape, AliasMode aliasMode);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_EXPLAINLAYOUT_H
