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
  std::string cpuTarget;      ///< "": the best that the processor has
  int64_t cpuCacheBytes = -1; ///< -1: as many as the processor says
  int logLevel = 1000; ///< the least mlafix_log_level that goes to stderr
};

const Environment &environment();

/// The lines of a small file in which the operating system says something; none
/// where there is no such file. Not by C++ streams, which bring 0.4 MB of
/// locales into each library that has libstdc++ inside.
std::vector<std::string> readLines(const std::string &path);

/// The first of them, or empty.
std::string readLine(const std::string &path);

/// Reads the variables again. Not while other threads use the runtime.
void reloadEnvironmentForTesting();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_ENVIRONMENT_H
