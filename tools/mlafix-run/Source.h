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
/// target ("cpu", "sm_90") to the bytes of a unit. Returns false and sets
/// `error` on failure. Source.cpp calls the compiler; NoSource.cpp, in builds
/// without one, reports that there is none.
bool compileSource(const std::string &path, const std::string &bindings,
                   const std::string &target, std::string &unit,
                   std::string &error);

/// An argument of a launch: a tensor, a scalar in JSON, or, if neither, an
/// omitted one.
struct LaunchValue {
  std::string name;
  const Array *array = nullptr;
  std::string scalar;
};

/// Texts that rows printed, and their faults with source locations.
struct FollowedRows {
  std::vector<std::string> printed, faults;
};

/// Interprets the rows of a launch of the kernel in the .mlir file at `path` on
/// the host: collects what they print and all faults except unwritten elements
/// (docs/Proofs.md). Returns false and sets `error` on failure. Also defined
/// twice, as above.
bool followRows(const std::string &path, const std::string &kernel,
                const std::string &bindings,
                const std::vector<LaunchValue> &values, FollowedRows &followed,
                std::string &error);

} // namespace mlafix::run

#endif // MLAFIX_RUN_SOURCE_H
