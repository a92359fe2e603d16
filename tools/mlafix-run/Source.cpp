//===- Source.cpp - Compiling a source on the spot ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Source.h"

#include "mlafix/Compiler.h"

#include <fstream>
#include <sstream>

bool mlafix::run::compileSource(const std::string &path,
                                const std::string &bindings,
                                const std::string &target, std::string &unit,
                                std::string &error) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    error = "cannot read \"" + path + "\"";
    return false;
  }
  CompileOptions options;
  options.targets = {target};
  if (!bindings.empty()) {
    options.specializations.emplace_back();
    if (!parseBindings(bindings, options.specializations.back(), error))
      return false;
  }
  CompileResult result = compile(text.str(), path, options);
  unit = std::move(result.output);
  error = std::move(result.diagnostics);
  return result.ok;
}
