//===- Source.h - Compiling a source on the spot ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUN_SOURCE_H
#define MLAFIX_RUN_SOURCE_H

#include "Npy.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace mlafix::run {

/// Compiles the .mlir file at `path` to a unit, and sets `unit` to its bytes.
/// `bindings` is text such as "D=128,T=bf16", and `target` is "cpu" or a name
/// such as "sm_90". Returns false and sets `error` on failure. Source.cpp
/// defines this function. In builds without the compiler, NoSource.cpp defines
/// one that always fails, since there is no compiler.
bool compileSource(const std::string &path, const std::string &bindings,
                   const std::string &target, std::string &unit,
                   std::string &error);

using Scalar = std::variant<bool, int64_t, float>;

/// An argument of a launch: a tensor if `array` is not null, or a scalar. If
/// there is neither, the argument is omitted.
struct LaunchValue {
  std::string name;
  const Array *array = nullptr;
  std::optional<Scalar> scalar = {};
};

/// The lines that the rows of a launch printed, and the faults of the rows
/// with their source locations.
struct FollowedRows {
  std::vector<std::string> printed, faults;
};

/// Interprets the rows of a launch on the host, for the kernel in the .mlir
/// file at `path`. Collects what they print, and all faults except unwritten
/// elements (docs/Proofs.md). Returns false and sets `error` on failure. As
/// with compileSource(), a build has the definition in Source.cpp or the one in
/// NoSource.cpp.
bool followRows(const std::string &path, const std::string &kernel,
                const std::string &bindings,
                const std::vector<LaunchValue> &values, FollowedRows &followed,
                std::string &error);

} // namespace mlafix::run

#endif // MLAFIX_RUN_SOURCE_H
