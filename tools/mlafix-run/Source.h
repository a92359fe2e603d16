//===- Source.h - Compiling a source on the spot ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUN_SOURCE_H
#define MLAFIX_RUN_SOURCE_H

#include <string>

namespace mlafix::run {

/// Compiles the .mlir file at `path` with the bindings ("D=128,T=bf16") for the
/// target ("cpu", "sm_90") into the bytes of a unit. On failure returns false
/// and says in `error` why. Two definitions: Source.cpp calls the compiler,
/// NoSource.cpp, in a build without one, says that there is none.
bool compileSource(const std::string &path, const std::string &bindings,
                   const std::string &target, std::string &unit,
                   std::string &error);

} // namespace mlafix::run

#endif // MLAFIX_RUN_SOURCE_H
