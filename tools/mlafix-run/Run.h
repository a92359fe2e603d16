//===- Run.h - Running a kernel on arrays -----------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUN_RUN_H
#define MLAFIX_RUN_RUN_H

#include "Options.h"

#include "mlafix/runtime.hpp"

namespace mlafix::run {

/// Prints the kernels of a unit with their signatures.
void listKernels(const Unit &unit);

/// Reads the inputs, runs the kernel, writes the outputs. Whether that is all
/// there is to say: false where `options.debug` finds elements of an output
/// that are unwritten. Throws std::runtime_error.
bool runKernel(const Unit &unit, const Options &options);

} // namespace mlafix::run

#endif // MLAFIX_RUN_RUN_H
