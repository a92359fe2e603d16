//===- Exhaustive.h - executes all small launches ---------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_EXHAUSTIVE_H
#define MLAFIX_ANALYSIS_EXHAUSTIVE_H

#include "lib/Analysis/RowInterpreter.h"

namespace mlafix {

/// Executes the kernel on all small launches: sizes from 0 to `most`, scalars
/// and memory contents from -1 to `most` + 1, optional arguments present or
/// absent. Enumerates the memory contents of a launch up to a limit, then draws
/// them at random. Returns the first violation of each question for each
/// argument.
std::vector<Violation> runSmallLaunches(KernelOp kernel, int64_t most);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_EXHAUSTIVE_H
