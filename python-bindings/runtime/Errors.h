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

/// Looks up the exception classes of mlafix.errors. Called once, when the
/// extension module is imported.
void importErrors();

/// Returns mlafix.ArgumentError as a borrowed reference.
PyObject *classOfArgumentErrors();

/// Raises mlafix.ArgumentError with the formatted message in Python, and
/// throws.
[[noreturn]] void throwArgumentError(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/// Raises mlafix.UnitError with the formatted message in Python, and throws.
[[noreturn]] void throwUnitError(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/// Raises the exception for `status` in Python, with the text of
/// mlafix_last_error(), and throws.
[[noreturn]] void throwStatus(mlafix_status status);

/// Formats as printf() does, into a string of any length.
std::string formatted(const char *format, va_list args);

/// Clears a pending Python exception, if there is one. Rethrows an exception
/// that `except Exception` would not catch (SystemExit, KeyboardInterrupt).
void clearException();

/// Returns the attribute, or null if reading it raises an exception. Rethrows
/// SystemExit and KeyboardInterrupt, as clearException does.
nanobind::object attributeOf(PyObject *object, const char *name);

inline bool hasAttribute(PyObject *object, const char *name) {
  return attributeOf(object, name).is_valid();
}

/// Returns the name of the object's type with its module: "torch.Tensor".
/// Leaves out the modules "builtins" and "__main__": "list".
std::string typeName(nanobind::handle object);

/// Returns str(object) or repr(object) in UTF-8. Unpaired surrogates become
/// escape sequences. Returns the name of the object's type if str() or repr()
/// fails.
std::string textOf(nanobind::handle object);
std::string reprOf(nanobind::handle object);

/// Throws unless `status` is MLAFIX_OK.
inline void check(mlafix_status status) {
  if (__builtin_expect(status != MLAFIX_OK, 0))
    throwStatus(status);
}

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_ERRORS_H
