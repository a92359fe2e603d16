//===- ReadSource.h - reads a source and its bindings -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUN_READSOURCE_H
#define MLAFIX_RUN_READSOURCE_H

#include "mlafix/Compiler.h"

namespace mlafix::run {

/// Reads the .mlir file at `path` into `text`. Parses `bindings`, such as
/// "D=128,T=bf16", and adds them to `options`. Returns false and sets `error`
/// on failure.
bool readSource(const std::string &path, const std::string &bindings,
                std::string &text, CompileOptions &options, std::string &error);

} // namespace mlafix::run

#endif // MLAFIX_RUN_READSOURCE_H
