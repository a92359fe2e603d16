//===- Options.h - The command line of mlafix-bench -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_BENCH_OPTIONS_H
#define MLAFIX_BENCH_OPTIONS_H

#include "Measure.h"

#include <regex>

namespace mlafix::bench {

struct Options {
  std::string units; ///< "": bench-units beside the program's folder
  mlafix_device device = {MLAFIX_CPU, 0};
  std::regex cases;
  bool isFiltered = false; ///< true if --case was given
  std::string baselines, json;
  int64_t rotate = -1; ///< in MiB; -1: three times the cache size
  Settings settings;
  bool list = false, listUnits = false;
  bool streamPtx = false, dependentStreamPtx = false;
  bool help = false, quick = false;
};

/// Parses the command line. Throws std::runtime_error for invalid options.
Options parseOptions(int argc, const char *const *argv);

/// The text that --help prints.
extern const char *const usage;

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_OPTIONS_H
