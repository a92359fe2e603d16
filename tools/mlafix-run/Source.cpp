//===- Source.cpp - Compiling a source on the spot ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Source.h"

#include "mlafix/Compiler.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <fstream>
#include <set>
#include <sstream>

using namespace llvm;
using namespace mlafix;
using namespace mlafix::run;

/// Reads the .mlir file at `path` into `text`. Parses `bindings`, such as
/// "D=128,T=bf16", and adds them to `options`. Returns false and sets `error`
/// on failure.
static bool readSource(const std::string &path, const std::string &bindings,
                       std::string &text, CompileOptions &options,
                       std::string &error) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream stream;
  stream << file.rdbuf();
  if (!file) {
    error = "cannot read \"" + path + "\"";
    return false;
  }
  text = stream.str();
  if (bindings.empty())
    return true;
  options.specializations.emplace_back();
  return parseBindings(bindings, options.specializations.back(), error);
}

bool mlafix::run::compileSource(const std::string &path,
                                const std::string &bindings,
                                const std::string &target, std::string &unit,
                                std::string &error) {
  CompileOptions options;
  options.targets = {target};
  std::string text;
  if (!readSource(path, bindings, text, options, error))
    return false;
  CompileResult result = compile(text, path, options);
  unit = std::move(result.output);
  error = std::move(result.diagnostics);
  return result.ok;
}

// Interpretation

// The maximum number of elements of a tensor that are passed to the compiler.
// A larger tensor is described by its sizes alone.
static constexpr int64_t kMaxElements = 1 << 20;

/// Returns the float semantics of a dtype, or null if it is not a float.
static const fltSemantics *getSemantics(mlafix_dtype dtype) {
  switch (dtype) {
  case MLAFIX_F32:
    return &APFloat::IEEEsingle();
  case MLAFIX_F16:
    return &APFloat::IEEEhalf();
  case MLAFIX_BF16:
    return &APFloat::BFloat();
  case MLAFIX_F8E4M3FN:
    return &APFloat::Float8E4M3FN();
  case MLAFIX_F8E5M2:
    return &APFloat::Float8E5M2();
  case MLAFIX_F8E8M0:
    return &APFloat::Float8E8M0FNU();
  default:
    return nullptr;
  }
}

static json::Value makeNumber(double value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

static json::Value readElement(const Array &array, int64_t offset) {
  size_t size = mlafix_dtype_size(array.dtype);
  uint64_t bits = 0;
  std::memcpy(&bits, array.bytes.data() + offset * size, size);
  if (const fltSemantics *semantics = getSemantics(array.dtype))
    return makeNumber(
        APFloat(*semantics, APInt(8 * size, bits)).convertToDouble());
  bool isSigned = array.dtype != MLAFIX_U8 && array.dtype != MLAFIX_BOOL;
  return isSigned ? SignExtend64(bits, 8 * size) : int64_t(bits);
}

/// Returns the elements of an array in row-major order, even if the array has
/// Fortran order.
static json::Array readElements(const Array &array) {
  json::Array elements;
  std::vector<int64_t> indices(array.sizes.size(), 0),
      strides = array.strides();
  for (int64_t i = 0, n = array.numElements(); i < n; ++i) {
    int64_t offset = 0;
    for (auto [index, stride] : zip(indices, strides))
      offset += index * stride;
    elements.push_back(readElement(array, offset));
    for (size_t dim = indices.size();
         dim-- > 0 && ++indices[dim] == array.sizes[dim];)
      indices[dim] = 0;
  }
  return elements;
}

static json::Value describe(const LaunchValue &value, bool isReadByElement) {
  if (value.scalar)
    return std::visit(
        [](auto scalar) -> json::Value {
          if constexpr (std::is_same_v<decltype(scalar), float>)
            return makeNumber(scalar);
          else
            return scalar;
        },
        *value.scalar);
  if (!value.array)
    return nullptr;
  json::Object object{{"sizes", json::Array(value.array->sizes)}};
  bool isFloat = getSemantics(value.array->dtype);
  if ((isReadByElement || !isFloat) &&
      value.array->numElements() <= kMaxElements)
    object["elements"] = readElements(*value.array);
  return object;
}

/// Formats a message as "file:line:column: message", or as "message" if it has
/// no location.
static std::string spell(const json::Object &object) {
  std::string message = object.getString("message")->str();
  std::optional<StringRef> file = object.getString("file");
  if (!file)
    return message;
  return file->str() + ":" + std::to_string(*object.getInteger("line")) + ":" +
         std::to_string(*object.getInteger("column")) + ": " + message;
}

/// Finds the names of the tensors that the kernel reads element by element.
/// Returns false and sets `error` on failure.
static bool findReadByElement(StringRef source, const std::string &path,
                              CompileOptions options,
                              std::set<std::string> &names,
                              std::string &error) {
  options.emit = Emit::Report;
  CompileResult report = compile(source, path, options);
  error = std::move(report.diagnostics);
  if (!report.ok)
    return false;
  json::Value parsed = cantFail(json::parse(report.output));
  for (const json::Value &arg : *parsed.getAsObject()->getArray("args"))
    if (arg.getAsObject()->getBoolean("by_element"))
      names.insert(arg.getAsObject()->getString("name")->str());
  return true;
}

bool mlafix::run::followRows(const std::string &path, const std::string &kernel,
                             const std::string &bindings,
                             const std::vector<LaunchValue> &values,
                             FollowedRows &followed, std::string &error) {
  CompileOptions options;
  options.kernel = kernel;
  std::string source;
  if (!readSource(path, bindings, source, options, error))
    return false;
  std::set<std::string> names;
  if (!findReadByElement(source, path, options, names, error))
    return false;
  json::Object launch;
  for (const LaunchValue &value : values)
    launch[value.name] = describe(value, names.count(value.name) != 0);
  options.emit = Emit::Faults;
  raw_string_ostream(options.launch) << json::Value(std::move(launch));
  CompileResult result = compile(source, path, options);
  error = std::move(result.diagnostics);
  if (!result.ok)
    return false;
  json::Value parsed = cantFail(json::parse(result.output));
  const json::Object &found = *parsed.getAsObject();
  for (const json::Value &text : *found.getArray("printed"))
    followed.printed.push_back(spell(*text.getAsObject()));
  for (const json::Value &fault : *found.getArray("faults"))
    if (*fault.getAsObject()->getString("question") != "coverage")
      followed.faults.push_back(spell(*fault.getAsObject()));
  return true;
}
