//===- Source.cpp - Compiling a source on the spot ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Source.h"

#include "ReadSource.h"

#include <fstream>
#include <sstream>

bool mlafix::run::readSource(const std::string &path,
                             const std::string &bindings, std::string &text,
                             CompileOptions &options, std::string &error) {
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
