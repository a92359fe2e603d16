//===- Errors.cpp - Statuses to Python exceptions -------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Errors.h"

#include <cstdio>
#include <string>

namespace nb = nanobind;
using namespace mlafix::python;

namespace {

/// The exception classes. They are plain pointers that are never released: the
/// destructors of C++ globals run after the interpreter has ended, so they
/// cannot release Python objects.
struct Classes {
  PyObject *error, *argument, *unit, *driver, *rank;
} classes;

PyObject *classOf(mlafix_status status) {
  switch (status) {
  case MLAFIX_INVALID_ARGUMENT:
    return classes.argument;
  case MLAFIX_NOT_FOUND:
  case MLAFIX_IO_ERROR:
  case MLAFIX_BAD_UNIT:
  case MLAFIX_VERSION_MISMATCH:
  case MLAFIX_REFUSED:
  case MLAFIX_NO_IMAGE:
    return classes.unit;
  case MLAFIX_NO_DRIVER:
  case MLAFIX_DRIVER_ERROR:
    return classes.driver;
  case MLAFIX_RANK_ERROR:
    return classes.rank;
  case MLAFIX_OUT_OF_MEMORY:
    return PyExc_MemoryError;
  default:
    return classes.error;
  }
}

[[noreturn]] void raise(PyObject *type, const std::string &text) {
  // The text may be invalid UTF-8, since it may contain a file name or a
  // library's message.
  nb::object message = nb::steal(PyUnicode_DecodeUTF8(
      text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
  if (message.is_valid())
    PyErr_SetObject(type, message.ptr());
  throw nb::python_error();
}

/// Encodes the str `text` in UTF-8, and releases the caller's reference to
/// `text`. If `text` is null or cannot be encoded, clears the exception and
/// returns the name of the type of `object`.
std::string toUtf8(PyObject *text, nb::handle object) {
  nb::object owned = nb::steal(text);
  nb::object bytes;
  // "backslashreplace" is for unpaired surrogates, which UTF-8 cannot encode.
  if (owned.is_valid())
    bytes = nb::steal(
        PyUnicode_AsEncodedString(owned.ptr(), "utf-8", "backslashreplace"));
  if (bytes.is_valid())
    return PyBytes_AsString(bytes.ptr());
  clearException();
  return typeName(object);
}

} // namespace

void mlafix::python::importErrors() {
  nb::module_ module = nb::module_::import_("mlafix.errors");
  classes.error = nb::object(module.attr("Error")).release().ptr();
  classes.argument = nb::object(module.attr("ArgumentError")).release().ptr();
  classes.unit = nb::object(module.attr("UnitError")).release().ptr();
  classes.driver = nb::object(module.attr("DriverError")).release().ptr();
  classes.rank = nb::object(module.attr("RankError")).release().ptr();
}

PyObject *mlafix::python::classOfArgumentErrors() { return classes.argument; }

std::string mlafix::python::formatted(const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int size = std::vsnprintf(nullptr, 0, format, args);
  std::string text(size > 0 ? static_cast<size_t>(size) : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

void mlafix::python::clearException() {
  if (!PyErr_Occurred())
    return;
  if (!PyErr_ExceptionMatches(PyExc_Exception))
    throw nb::python_error();
  PyErr_Clear();
}

nb::object mlafix::python::attributeOf(PyObject *object, const char *name) {
  nb::object value = nb::steal(PyObject_GetAttrString(object, name));
  if (!value.is_valid())
    clearException();
  return value;
}

std::string mlafix::python::typeName(nb::handle object) {
  nb::handle type = object.type();
  auto attribute = [&](const char *name) -> std::string {
    nb::object value = nb::steal(PyObject_GetAttrString(type.ptr(), name));
    const char *text = value.is_valid() && PyUnicode_Check(value.ptr())
                           ? PyUnicode_AsUTF8AndSize(value.ptr(), nullptr)
                           : nullptr;
    if (text)
      return text;
    clearException();
    return "";
  };
  std::string module = attribute("__module__"),
              name = attribute("__qualname__");
  if (module.empty() || module == "builtins" || module == "__main__")
    return name;
  return module + "." + name;
}

std::string mlafix::python::textOf(nb::handle object) {
  return toUtf8(PyObject_Str(object.ptr()), object);
}

std::string mlafix::python::reprOf(nb::handle object) {
  return toUtf8(PyObject_Repr(object.ptr()), object);
}

void mlafix::python::throwArgumentError(const char *format, ...) {
  va_list args;
  va_start(args, format);
  std::string text = formatted(format, args);
  va_end(args);
  raise(classes.argument, text);
}

void mlafix::python::throwUnitError(const char *format, ...) {
  va_list args;
  va_start(args, format);
  std::string text = formatted(format, args);
  va_end(args);
  raise(classes.unit, text);
}

void mlafix::python::throwStatus(mlafix_status status) {
  raise(classOf(status), mlafix_last_error());
}
