//===- Options.h - The command line of mlafix-run ---------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUN_OPTIONS_H
#define MLAFIX_RUN_OPTIONS_H

#include "mlafix/runtime.h"

#include <map>
#include <string>
#include <vector>

namespace mlafix::run {

struct Options {
  std::string file;     ///< path of a unit or of a .mlir source
  std::string kernel;   ///< may be empty if the unit has one kernel
  std::string bindings; ///< such as "D=128,T=bf16"
  mlafix_device device = {MLAFIX_CPU, 0};
  bool list = false;
  bool debug = false;
  bool help = false;
  std::map<std::string, std::string>
      args; ///< argument name -> .npy file or value
  std::map<std::string, std::string> outs; ///< argument name -> .npy file
  std::map<std::string, std::vector<int64_t>> shapes;
};

/// Parses the command line. Throws std::runtime_error for invalid options.
Options parseOptions(int argc, const char *const *argv);

/// The text that --help prints.
extern const char *const usage;

} // namespace mlafix::run

#endif // MLAFIX_RUN_OPTIONS_H
