//===- Environment.h - Environment variables, system files ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
//   MLAFIX_NUM_THREADS           threads for CPU launches, the caller included
//   MLAFIX_NO_DEPENDENT_LAUNCH   1: never use programmatic dependent launch
//   MLAFIX_CPU_TARGET            x86-64 or x86-64-v3: no CPU code of a higher
//                                level
//   MLAFIX_CPU_CACHE_BYTES       size of the CPU's last cache: launches that
//                                move more than half of it use streaming
//                                stores; unset: what the system says
//   MLAFIX_LOG                   debug, info or warning: log to stderr
//
// Read once, at the first use. What one of them cannot be is said on stderr,
// and counts as not set.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_ENVIRONMENT_H
#define MLAFIX_RUNTIME_ENVIRONMENT_H

#include <cstdint>
#include <string>
#include <vector>

namespace mlafix::runtime {

struct Environment {
  int numThreads = 0; ///< 0: as many as the process may use
  bool noDependentLaunch = false;
  std::string cpuTarget;      ///< "": the best that the processor supports
  int64_t cpuCacheBytes = -1; ///< -1: as reported by the system
  int logLevel = 1000;        ///< least mlafix_log_level printed to stderr
};

const Environment &environment();

/// The lines of a small system file; empty if there is none. C++ streams would
/// add 0.4 MB of locales to each library that links libstdc++ statically.
std::vector<std::string> readLines(const std::string &path);

/// The first line, or empty.
std::string readLine(const std::string &path);

/// Reads the variables again. No other thread may use the runtime meanwhile.
void reloadEnvironmentForTesting();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_ENVIRONMENT_H
