//===- Header.cpp - writes typed headers ----------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/EmbedUnit.h"

#include "mlafix/runtime/base.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace mlafix::target;

namespace {
class HeaderWriter {
public:
  HeaderWriter(StringRef unit, ArrayRef<json::Object> signatures)
      : unit(unit), upper(unit.upper()),
        kernels(describeKernels(unit, signatures)), stream(text) {}

  std::string write() {
    writeBegin();
    for (const HostKernel &kernel : kernels) {
      writeComment(kernel);
      stream << formatv("mlafix_status {0}({1}) MLAFIX_NOEXCEPT;\n\n",
                        kernel.cName, parametersC(kernel, launchTail));
      stream << formatv("/** The checks of {0}, once, to launch many times "
                        "(mlafix_bind). */\n"
                        "mlafix_status {0}_bind({1}) MLAFIX_NOEXCEPT;\n\n",
                        kernel.cName, parametersC(kernel, bindTail));
    }
    stream << "#ifdef __cplusplus\n} /* extern \"C\" */\n";
    for (const HostKernel &kernel : kernels)
      if (any_of(kernel.args, [](const HostArg &arg) { return arg.isTensor; }))
        writeCpp(kernel);
    stream << "\n#endif /* __cplusplus */\n\n#endif\n\n";
    writeImplementation();
    return std::move(text);
  }

private:
  static constexpr StringLiteral launchTail =
      "mlafix_device device, void *stream, uint32_t flags";
  static constexpr StringLiteral bindTail =
      "mlafix_device device, uint32_t flags, mlafix_bound **bound";

  void writeBegin();
  void writeComment(const HostKernel &kernel);
  void writeCpp(const HostKernel &kernel);
  void writeImplementation();
  void writeBodies(const HostKernel &kernel, size_t index);
  static std::string wrap(ArrayRef<std::string> items);
  static std::string parametersC(const HostKernel &kernel, StringRef tail);
  static std::string parametersCpp(const HostKernel &kernel, StringRef tail);
  static std::string argumentsCpp(const HostKernel &kernel, StringRef tail);

  StringRef unit;
  std::string upper;
  std::vector<HostKernel> kernels;
  std::string text;
  raw_string_ostream stream;
};
} // namespace

void HeaderWriter::writeBegin() {
  stream << formatv(
      R"(/* The kernels of the unit "{0}" as functions of C and C++. Written by mlafix's compiler: do not edit.
 *
 * A call is checked and launched as mlafix_launch does it; the first one loads the unit. One source file of the program
 * holds the unit:
 *
 *   #define {1}_IMPLEMENTATION
 *   #define {1}_UNIT "{0}.mlafix"      // embeds this file; without it, {0}_load reads one at run time
 *   #include "{0}.h"
 */
#ifndef MLAFIX_UNIT_{1}_H
#define MLAFIX_UNIT_{1}_H

#include "mlafix/runtime.h"
#ifdef __cplusplus
#include "mlafix/runtime/views.hpp"
#endif

#if MLAFIX_ABI_VERSION != {2}
#error "this header is for mlafix's ABI version {2}: write it again with the installed compiler of mlafix"
#endif

#ifdef __cplusplus
extern "C" {{
#endif

/** Load the unit now: from the file `path`, or with NULL the embedded one. Once one is loaded, this does nothing. From
 * any thread. Errors: those of mlafix_unit_load_file; NOT_FOUND (nothing is embedded and `path` is NULL, or the unit
 * lacks a kernel of this header); VERSION_MISMATCH (the library has another ABI version than this header). */
mlafix_status {0}_load(const char *path) MLAFIX_NOEXCEPT;

/** The unit, loaded if it is not yet, for mlafix_unit_prepare and the like. It is never destroyed. */
mlafix_status {0}_unit(mlafix_unit **unit) MLAFIX_NOEXCEPT;

)",
      unit, upper, MLAFIX_ABI_VERSION);
}

void HeaderWriter::writeComment(const HostKernel &kernel) {
  stream << "/** Kernel " << kernel.name;
  if (!kernel.bindings.empty())
    stream << " for " << kernel.bindings;
  stream << ".\n *\n";
  size_t width = 0;
  for (const HostArg &arg : kernel.args)
    width = std::max(width, arg.cName.size());
  for (const HostArg &arg : kernel.args)
    if (!arg.isAbsent)
      stream << " *  " << left_justify(arg.cName, width) << "  "
             << arg.description << "\n";
  stream
      << " *\n * `device`, `stream`, `flags` and errors as in mlafix_launch; "
         "also the errors of "
      << unit << "_load. */\n";
}

/// Joins items with commas, in lines of at most 120 columns indented by four.
std::string HeaderWriter::wrap(ArrayRef<std::string> items) {
  std::string list;
  size_t column = 120;
  for (auto [index, item] : enumerate(items)) {
    if (column + item.size() + 2 > 118) {
      if (!list.empty())
        list.back() = '\n';
      else
        list = "\n";
      list += "    ";
      column = 4;
    }
    list += item + (index + 1 < items.size() ? ", " : "");
    column += item.size() + 2;
  }
  return list;
}

std::string HeaderWriter::parametersC(const HostKernel &kernel,
                                      StringRef tail) {
  std::vector<std::string> list;
  for (const HostArg &arg : kernel.args)
    if (!arg.isAbsent)
      list.push_back(
          (arg.isTensor ? "const mlafix_tensor *" : arg.cType + " ") +
          arg.cName);
  list.push_back(tail.str());
  return wrap(list);
}

std::string HeaderWriter::parametersCpp(const HostKernel &kernel,
                                        StringRef tail) {
  std::vector<std::string> list;
  for (const HostArg &arg : kernel.args) {
    if (arg.isAbsent)
      continue;
    std::string type = arg.cType;
    if (arg.isTensor)
      type = formatv("mlafix::{0}<{1}{2}, {3}>",
                     arg.isOptional ? "OptionalView" : "View",
                     arg.isWritten ? "" : "const ", arg.cType, arg.rank);
    list.push_back(type + " " + arg.cName);
  }
  list.push_back(tail.str());
  return wrap(list);
}

/// Lists the arguments with which the C++ function calls the C function: the
/// C++ arguments, converted, then `tail`.
std::string HeaderWriter::argumentsCpp(const HostKernel &kernel,
                                       StringRef tail) {
  std::vector<std::string> list;
  for (const HostArg &arg : kernel.args)
    if (!arg.isAbsent)
      list.push_back(arg.cName + (arg.isTensor ? ".on(device)" : ""));
  list.push_back(tail.str());
  return wrap(list);
}

void HeaderWriter::writeCpp(const HostKernel &kernel) {
  stream << formatv(
      R"(
/// {0} for views; throws mlafix::Error.
inline void {0}({1}) {{
  mlafix::check({0}({2}));
}
/// {0}_bind for views; throws mlafix::Error.
inline mlafix::Bound {0}_bind({3}) {{
  mlafix_bound *bound = nullptr;
  mlafix::check({0}_bind({4}));
  return mlafix::Bound::adopt(bound);
}
)",
      kernel.cName,
      parametersCpp(kernel, "mlafix_device device = mlafix::cpu(), void "
                            "*stream = nullptr, uint32_t flags = 0"),
      argumentsCpp(kernel, "device, stream, flags"),
      parametersCpp(kernel, "mlafix_device device = mlafix::cpu(), uint32_t "
                            "flags = 0"),
      argumentsCpp(kernel, "device, flags, &bound"));
}

void HeaderWriter::writeBodies(const HostKernel &kernel, size_t index) {
  std::vector<std::string> args;
  for (const HostArg &arg : kernel.args)
    args.push_back(
        formatv("{0}({1})", arg.maker, arg.isAbsent ? "NULL" : arg.cName));
  auto write = [&](StringRef name, StringRef parameters, StringRef call) {
    stream << formatv(R"(
mlafix_status {0}({1}) MLAFIX_NOEXCEPT {{
  const mlafix_arg args[] = {{{2}};
  const mlafix_kernel *kernel = NULL;
  const mlafix_status status = mlafix_embedded_kernel(&mlafix_unit_of_{3}, {4}, &kernel);
  return status != MLAFIX_OK ? status : {5};
}
)",
                      name, parameters, wrap(args), unit, index, call);
  };
  std::string count = std::to_string(args.size());
  write(kernel.cName, parametersC(kernel, launchTail),
        "mlafix_launch(kernel, args, " + count + ", device, stream, flags)");
  write(kernel.cName + "_bind", parametersC(kernel, bindTail),
        "mlafix_bind(kernel, args, " + count + ", device, flags, bound)");
}

void HeaderWriter::writeImplementation() {
  stream << formatv(
      R"(#if defined({1}_IMPLEMENTATION) && !defined({1}_IMPLEMENTED)
#define {1}_IMPLEMENTED
#ifdef __cplusplus
extern "C" {{
#endif

)",
      unit, upper);
  writeEmbeddedUnit(stream, unit, kernels);
  stream << formatv(R"(
mlafix_status {0}_load(const char *path) MLAFIX_NOEXCEPT {{
  return mlafix_embedded_load(&mlafix_unit_of_{0}, path);
}

mlafix_status {0}_unit(mlafix_unit **unit) MLAFIX_NOEXCEPT {{
  return mlafix_embedded_unit(&mlafix_unit_of_{0}, unit);
}
)",
                    unit);
  for (auto [index, kernel] : enumerate(kernels))
    writeBodies(kernel, index);
  stream << "\n#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n#endif\n";
}

Expected<std::string>
mlafix::target::writeHeader(StringRef unit, ArrayRef<json::Object> signatures) {
  if (Error error = checkUnitName(unit))
    return error;
  return HeaderWriter(unit, signatures).write();
}
