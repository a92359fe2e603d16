//===- Exhaustive.h - all small launches, run -------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_EXHAUSTIVE_H
#define MLAFIX_ANALYSIS_EXHAUSTIVE_H

#include "lib/Analysis/RowInterpreter.h"

namespace mlafix {

/// The faults of the kernel in any launch with sizes from 0 to `most`, scalars
/// from -1 to `most` + 1 and optional arguments given or not, with what memory
/// holds from the same range: all of that, up to a number of runs of each
/// launch, then chosen at random. The first violation of each question for each
/// argument.
std::vector<Violation> runSmallLaunches(KernelOp kernel, int64_t most);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_EXHAUSTIVE_H
