//===- Errors.cpp - Diagnostics to Python exceptions ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Errors.h"
#include "python-bindings/shared/Finalization.h"

namespace nb = nanobind;
using namespace mlafix;

/// Converts text to a str. Replaces bytes that are not UTF-8, since a source
/// may contain any bytes.
static nb::object toText(std::string_view text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), text.size(), "replace"));
}

static const char *spell(Diagnostic::Severity severity) {
  switch (severity) {
  case Diagnostic::Severity::Error:
    return "error";
  case Diagnostic::Severity::Warning:
    return "warning";
  case Diagnostic::Severity::Note:
    return "note";
  case Diagnostic::Severity::Remark:
    return "remark";
  }
  return "error";
}

static const char *spell(Diagnostic::Kind kind) {
  switch (kind) {
  case Diagnostic::Kind::Other:
    return "";
  case Diagnostic::Kind::SeveralKernels:
    return "several kernels";
  case Diagnostic::Kind::UnboundDim:
    return "unbound dim";
  }
  return "";
}

nb::list mlafix::python::toList(const std::vector<Diagnostic> &messages) {
  nb::list list;
  for (const Diagnostic &message : messages) {
    const SourceLocation &place = message.location;
    list.append(nb::make_tuple(spell(message.severity), toText(message.message),
                               toText(place.file), place.line, place.column,
                               place.endLine, place.endColumn,
                               spell(message.kind), toText(message.subject)));
    list.extend(toList(message.notes));
  }
  return list;
}

void mlafix::python::throwCompileError(const std::vector<Diagnostic> &messages,
                                       std::string_view source,
                                       std::string_view name) {
  Call call;
  nb::object make =
      nb::module_::import_("mlafix._reports.diagnostics").attr("compile_error");
  nb::object error = make(toList(messages), toText(source), toText(name));
  PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.ptr())),
                  error.ptr());
  throw nb::python_error();
}
