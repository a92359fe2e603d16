//===- RowInterpreter.h - interprets a kernel's rows ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Executes every row of a small launch and checks each access. The interpreter
// shares no reasoning with the prover, so it serves to check the prover's
// examples: an example refutes a property only if its execution here violates
// the property.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_ROWINTERPRETER_H
#define MLAFIX_ANALYSIS_ROWINTERPRETER_H

#include "lib/Analysis/SmallLaunch.h"

namespace mlafix {

/// Supplies each value that the interpreter does not compute, including memory
/// contents. It is called once per element that is read, and once per row for
/// each other value.
using Oracle =
    llvm::function_ref<int64_t(mlir::Value, llvm::ArrayRef<int64_t> row)>;

/// Executes all rows sequentially. Returns the first violation of each question
/// for each argument, or nullopt if the launch is too large. Executes at most
/// `steps` ops and subtracts the number of executed ops from `steps`.
std::optional<std::vector<Violation>>
interpretRows(KernelOp kernel, const SmallLaunch &launch, Oracle oracle,
              llvm::ArrayRef<int64_t> segments = {}, int64_t *steps = nullptr);

/// Executes all rows of a launch whose data is in `launch`.
Replay replayRows(KernelOp kernel, const SmallLaunch &launch);

/// Executes the kernel on all small launches: sizes from 0 to `most`, scalars
/// and memory contents from -1 to `most` + 1, optional arguments present or
/// absent. Enumerates the memory contents of a launch up to a limit, then draws
/// them at random. Returns the first violation of each question for each
/// argument.
std::vector<Violation> runSmallLaunches(KernelOp kernel, int64_t most);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_ROWINTERPRETER_H
