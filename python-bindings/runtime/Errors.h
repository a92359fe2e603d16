//===- Errors.h - Statuses to Python exceptions -----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_ERRORS_H
#define MLAFIX_PYTHON_ERRORS_H

#include "mlafix/runtime.h"
#include <nanobind/nanobind.h>

namespace mlafix::python {

/// Looks the classes of mlafix.errors up; once, when the module is loaded.
void importErrors();

/// mlafix.ArgumentError; borrowed.
PyObject *classOfArgumentErrors();

/// Sets mlafix.ArgumentError with that message and throws.
[[noreturn]] void throwArgumentError(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/// Sets mlafix.UnitError with that message and throws.
[[noreturn]] void throwUnitError(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/// Sets the exception that stands for `status`, with the thread's last message,
/// and throws.
[[noreturn]] void throwStatus(mlafix_status status);

/// Throws unless `status` is MLAFIX_OK.
inline void check(mlafix_status status) {
  if (__builtin_expect(status != MLAFIX_OK, 0))
    throwStatus(status);
}

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_ERRORS_H
