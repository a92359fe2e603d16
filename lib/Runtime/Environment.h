//===- Environment.h - Environment variables, system files ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The runtime reads these environment variables:
//
//   MLAFIX_NUM_THREADS           number of threads for CPU launches, including
//                                the calling thread
//   MLAFIX_NO_DEPENDENT_LAUNCH   1: never use programmatic dependent launch
//   MLAFIX_CPU_TARGET            highest level of CPU code to use: x86-64 or
//                                x86-64-v3, for example
//   MLAFIX_CPU_CACHE_BYTES       size of the CPU's last-level caches in bytes
//   MLAFIX_LOG                   debug, info or warning: log to stderr
//
// The variables are read once, at the first use. An invalid value is reported
// on stderr and counts as not set. MLAFIX_CPU_CACHE_BYTES replaces the cache
// size that the system reports. A CPU launch that moves more bytes than half of
// the cache size may use streaming stores.
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
  std::string cpuTarget; ///< "": the best level that the processor supports
  int64_t cpuCacheBytes = -1; ///< -1: the size that the system reports
  int logLevel = 1000;        ///< lowest mlafix_log_level that goes to stderr
};

const Environment &environment();

/// Returns the total bytes of the last-level caches that this process's threads
/// use, or the size that the environment sets instead. The first call reads
/// system files.
int64_t lastCacheBytes();

/// Returns the lines of a small system file, or none if the file cannot be
/// read. It does not use C++ streams: they would add 0.4 MB of locales to each
/// library that links libstdc++ statically.
std::vector<std::string> readLines(const std::string &path);

/// Returns the first line of a file, or "" if the file cannot be read.
std::string readLine(const std::string &path);

/// Reads all variables again. No other thread may use the runtime meanwhile.
void reloadEnvironmentForTesting();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_ENVIRONMENT_H
