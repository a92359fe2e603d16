//===- Errors.h - Diagnostics to Python exceptions --------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_COMPILER_ERRORS_H
#define MLAFIX_PYTHON_COMPILER_ERRORS_H

#include "mlafix/Diagnostic.h"
#include <nanobind/nanobind.h>

#include <string_view>
#include <vector>

namespace mlafix::python {

/// Converts messages and their notes to tuples with the fields of
/// mlafix._reports.diagnostics.Message.
nanobind::list toList(const std::vector<Diagnostic> &messages);

/// Throws a mlafix.CompileError with the given messages. `source` is the text
/// of the file that the messages call `name`. If both are "", the lines that
/// the error shows are read from the files on disk.
[[noreturn]] void throwCompileError(const std::vector<Diagnostic> &messages,
                                    std::string_view source,
                                    std::string_view name);

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_COMPILER_ERRORS_H
