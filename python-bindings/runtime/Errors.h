//===- Errors.h - Statuses to Python exceptions -----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_ERRORS_H
#define MLAFIX_PYTHON_ERRORS_H

#include "mlafix/runtime.h"
#include <cstdarg>
#include <nanobind/nanobind.h>
#include <string>

namespace mlafix::python {

/// Looks up the classes of mlafix.errors. Called once, when the module is
/// loaded.
void importErrors();

/// Returns mlafix.ArgumentError as a borrowed reference.
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

/// printf() to a string of any length.
std::string formatted(const char *format, va_list args);

/// Clears a pending Python exception, before an error of our own replaces it.
/// Rethrows an exception that `except Exception` would not catch (SystemExit,
/// KeyboardInterrupt).
void clearException();

/// True if the object has the attribute. False if reading it raises an
/// exception; like clearException, rethrows SystemExit and KeyboardInterrupt.
bool hasAttribute(PyObject *object, const char *name);

/// The name of the object's type with its module, but without "builtins":
/// "torch.Tensor", "list".
std::string typeName(nanobind::handle object);

/// str(object) or repr(object) in UTF-8, whatever it contains. If there is no
/// such text, the name of the object's type.
std::string textOf(nanobind::handle object);
std::string reprOf(nanobind::handle object);

/// Throws unless `status` is MLAFIX_OK.
inline void check(mlafix_status status) {
  if (__builtin_expect(status != MLAFIX_OK, 0))
    throwStatus(status);
}

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_ERRORS_H
