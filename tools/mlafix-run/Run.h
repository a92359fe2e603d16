//===- Run.h - Running a kernel on arrays -----------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUN_RUN_H
#define MLAFIX_RUN_RUN_H

#include "Options.h"
#include "Source.h"

#include "mlafix/runtime.hpp"

#include <functional>

namespace mlafix::run {

/// Prints the kernels of a unit with their signatures.
void listKernels(const Unit &unit);

/// A function that --debug calls before the run. It interprets the rows of the
/// launch, prints what they print and their faults, and returns true if there
/// is no fault. Throws std::runtime_error.
using Follow = std::function<bool(const std::string &kernel,
                                  const std::vector<LaunchValue> &values)>;

/// Reads the inputs, runs the kernel and writes the outputs. Returns false if
/// `follow` is given and finds a fault, or if `options.debug` finds output
/// elements that no row writes. Throws std::runtime_error.
bool runKernel(const Unit &unit, const Options &options,
               const Follow &follow = nullptr);

} // namespace mlafix::run

#endif // MLAFIX_RUN_RUN_H
