//===- Module.cpp - The extension module mlafix._compiler -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The module can be built without LLVM: of the compiler, it includes only the
// two headers that need no LLVM, and links libmlafix_compiler.so.
//
//===----------------------------------------------------------------------===//

#include "BuilderModule.h"
#include "Errors.h"
#include "mlafix/Compiler.h"
#include "python-bindings/shared/Finalization.h"
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>

namespace nb = nanobind;
using namespace nb::literals;
using namespace mlafix;
using namespace mlafix::python;

using Text = std::string_view;

namespace {

/// Returns the bytes of a str or bytes object, which are valid as long as the
/// object lives. Throws TypeError for other objects.
Text bytesOf(nb::handle source) {
  Py_ssize_t size = 0;
  if (PyUnicode_Check(source.ptr())) {
    const char *data = PyUnicode_AsUTF8AndSize(source.ptr(), &size);
    if (!data)
      throw nb::python_error();
    return {data, static_cast<size_t>(size)};
  }
  if (PyBytes_Check(source.ptr()))
    return {PyBytes_AsString(source.ptr()),
            static_cast<size_t>(PyBytes_Size(source.ptr()))};
  throw nb::type_error(
      ("source: expected str or bytes, got " +
       nb::cast<std::string>(nb::str(source.type().attr("__qualname__"))))
          .c_str());
}

/// Converts the value of `option` by `parse`. Throws CompileError if `parse`
/// refuses it.
template <typename T>
T parsed(bool (&parse)(Text, T &, std::string &), const std::string &option,
         Text text) {
  T value;
  std::string error;
  if (parse(text, value, error))
    return value;
  Diagnostic diagnostic;
  diagnostic.message = option + ": " + error;
  throwCompileError({diagnostic}, {}, {});
}

CompileResult run(Text source, const std::string &name,
                  const CompileOptions &options) {
  Call call;
  CompileResult result;
  {
    ReleasedLock release;
    result = compile(source, name, options);
  }
  if (!result.ok)
    throwCompileError(result.messages, source, name);
  return result;
}

nb::object
compileSource(nb::object source, const std::string &name,
              const std::string &kernel,
              const std::vector<std::map<std::string, std::string>> &choices,
              const std::vector<std::string> &targets, Text emit,
              Text assembler, const std::string &ptxas,
              const std::string &variant, const std::vector<std::string> &plan,
              bool lineInfo, const std::string &digest,
              const std::string &unitName, const std::string &launch) {
  CompileOptions options;
  options.kernel = kernel;
  options.targets = targets;
  options.emit = parsed(parseEmit, "emit", emit);
  options.assembler = parsed(parseAssembler, "assembler", assembler);
  options.ptxas = ptxas;
  options.variant = variant;
  options.plan = plan;
  options.lineInfo = lineInfo;
  options.digest = digest;
  options.unitName = unitName;
  options.launch = launch;
  for (const auto &choice : choices)
    options.specializations.emplace_back(choice.begin(), choice.end());
  std::string output = run(bytesOf(source), name, options).output;
  bool isText = options.emit != Emit::Unit && options.emit != Emit::Cubin &&
                options.emit != Emit::Object;
  return isText ? nb::object(nb::str(output.data(), output.size()))
                : nb::object(nb::bytes(output.data(), output.size()));
}

nb::list listRemarks(nb::object source, const std::string &name,
                     const std::string &kernel,
                     const std::map<std::string, std::string> &bindings,
                     const std::string &target) {
  CompileOptions options;
  options.kernel = kernel;
  options.targets = {target};
  options.specializations.emplace_back(bindings.begin(), bindings.end());
  options.emit = Emit::MLIR; // all passes, no code
  options.remarks = true;
  std::vector<Diagnostic> remarks;
  for (Diagnostic &message : run(bytesOf(source), name, options).messages)
    if (message.severity == Diagnostic::Severity::Remark)
      remarks.push_back(std::move(message));
  return toList(remarks);
}

std::string describe(nb::object source, const std::string &name,
                     const std::string &kernel) {
  CompileOptions options;
  options.kernel = kernel;
  options.emit = Emit::Signature;
  return run(bytesOf(source), name, options).output;
}

} // namespace

NB_MODULE(_compiler, module) {
  module.doc() = "The mlafix compiler: kernels to units.";
  Call::waitAtExit();
  module.def(
      "compile", &compileSource, "source"_a, "name"_a, nb::kw_only(),
      "kernel"_a = "",
      "specializations"_a = std::vector<std::map<std::string, std::string>>(),
      "targets"_a = std::vector<std::string>(), "emit"_a = "unit",
      "assembler"_a = "any", "ptxas"_a = "", "variant"_a = "",
      "plan"_a = std::vector<std::string>(), "line_info"_a = false,
      "digest"_a = "", "unit_name"_a = "", "launch"_a = "",
      nb::sig("def compile(source: str | bytes, name: str, *, "
              "kernel: str = '', specializations: "
              "collections.abc.Sequence[collections.abc.Mapping[str, "
              "str]] = (), targets: collections.abc.Sequence[str] = (), "
              "emit: str = 'unit', assembler: str = 'any', ptxas: str "
              "= '', variant: str = '', plan: collections.abc.Sequence[str] "
              "= (), line_info: bool = False, "
              "digest: str = '', unit_name: str = '', launch: str = '') "
              "-> typing.Any"),
      "What `emit` names, in bytes if it is a unit, a cubin or an "
      "object, and else as a str. Raises CompileError.");
  module.def("remarks", &listRemarks, "source"_a, "name"_a, nb::kw_only(),
             "kernel"_a, "bindings"_a, "target"_a,
             nb::sig("def remarks(source: str | bytes, name: str, *, kernel: "
                     "str, bindings: collections.abc.Mapping[str, str], "
                     "target: str) -> list[tuple[str, str, str, int, int, int, "
                     "int, str, str]]"),
             "What the passes decided, and why: the fields of a "
             "mlafix._reports.diagnostics.Message each. Raises CompileError.");
  module.def("signature", &describe, "source"_a, "name"_a, "kernel"_a = "",
             nb::sig("def signature(source: str | bytes, name: str, kernel: "
                     "str = '') -> str"),
             "JSON: {\"name\", \"args\", \"aliases\", \"names\"}; see "
             "Emit::Signature in include/mlafix/Compiler.h. Raises "
             "CompileError.");
  module.def(
      "chip",
      [](const std::string &target) {
        std::map<std::string, std::int64_t> numbers;
        for (auto &[name, value] : chipNumbers(target))
          numbers.emplace(name, value);
        return numbers;
      },
      "target"_a,
      "What is published of a chip of a target: \"multiprocessors\", and "
      "\"bandwidth\" of its memory in GB/s. May be empty.");
  module.def("version", [] { return std::string(compilerVersion()); });
  bindBuilder(module);
}
