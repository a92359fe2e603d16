//===- Source.h - Compiling a source on the spot ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUN_SOURCE_H
#define MLAFIX_RUN_SOURCE_H

#include "Npy.h"

#include <string>
#include <vector>

namespace mlafix::run {

/// Compiles the .mlir file at `path` with the bindings ("D=128,T=bf16") for the
/// target ("cpu", "sm_90") into the bytes of a unit. On failure returns false
/// and says in `error` why. Two definitions: Source.cpp calls the compiler,
/// NoSource.cpp, in a build without one, says that there is none.
bool compileSource(const std::string &path, const std::string &bindings,
                   const std::string &target, std::string &unit,
                   std::string &error);

/// An argument of a launch: a tensor, a scalar as JSON has it, or, where it is
/// neither, one that is omitted.
struct LaunchValue {
  std::string name;
  const Array *array = nullptr;
  std::string scalar;
};

/// The faults of rows, one text each, with its location in the source.
struct FollowedRows {
  std::vector<std::string> printed, faults;
};

/// Follows the rows of one launch of the kernel in the .mlir file at `path` on
/// the host: what they print, and what they do wrong but leave elements
/// unwritten (docs/Proofs.md). On failure returns false and says in `error`
/// why. Two definitions, as above.
bool followRows(const std::string &path, const std::string &kernel,
                const std::string &bindings,
                const std::vector<LaunchValue> &values, FollowedRows &followed,
                std::string &error);

} // namespace mlafix::run

#endif // MLAFIX_RUN_SOURCE_H
