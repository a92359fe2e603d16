//===- RowInterpreter.h - a kernel's accesses, run --------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Runs every row of a small launch and looks at each access, without any of the
// proofs' reasoning: an example that refutes a proof is one that fails here.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_ROWINTERPRETER_H
#define MLAFIX_ANALYSIS_ROWINTERPRETER_H

#include "lib/Analysis/SmallLaunch.h"

namespace mlafix {

/// The values of what memory holds and of all else that the interpreter does
/// not compute: called once for each element read, and once for each other
/// value of each row.
using Oracle =
    llvm::function_ref<int64_t(mlir::Value, llvm::ArrayRef<int64_t> row)>;

/// Runs all rows, one after the other. The first violation of each question for
/// each argument; none at all where the launch is too large to run. `steps`:
/// how many ops may be run, of which those are subtracted that were.
std::optional<std::vector<Violation>>
interpretRows(KernelOp kernel, const SmallLaunch &launch, Oracle oracle,
              llvm::ArrayRef<int64_t> segments = {}, int64_t *steps = nullptr);

/// Runs all rows of a launch whose data is known.
Replay replayRows(KernelOp kernel, const SmallLaunch &launch);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_ROWINTERPRETER_H
