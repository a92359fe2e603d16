//===- Environment.cpp - Every environment variable of the runtime --------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Environment.h"

#include "Fork.h"

#include "mlafix/runtime.h"

#include <cstdlib>
#include <cstring>
#include <fstream>

using namespace mlafix::runtime;

namespace {

const char *read(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

Environment readAll() {
  Environment result;
  // Anything that is no number counts as not set: 0.
  long threads = std::strtol(read("MLAFIX_NUM_THREADS"), nullptr, 10);
  result.numThreads =
      threads < 0 ? 0 : (threads > 1024 ? 1024 : static_cast<int>(threads));
  const char *noDependent = read("MLAFIX_NO_DEPENDENT_LAUNCH");
  result.noDependentLaunch =
      *noDependent != '\0' && std::strcmp(noDependent, "0") != 0;
  result.cpuTarget = read("MLAFIX_CPU_TARGET");
  const char *cache = read("MLAFIX_CPU_CACHE_BYTES");
  char *end = nullptr;
  long long bytes = std::strtoll(cache, &end, 10);
  if (end != cache && bytes >= 0)
    result.cpuCacheBytes = bytes;
  const char *level = read("MLAFIX_LOG");
  if (std::strcmp(level, "debug") == 0)
    result.logLevel = MLAFIX_LOG_DEBUG;
  else if (std::strcmp(level, "info") == 0)
    result.logLevel = MLAFIX_LOG_INFO;
  else if (std::strcmp(level, "warning") == 0)
    result.logLevel = MLAFIX_LOG_WARNING;
  return result;
}

Lazy<Environment> instance;

} // namespace

const Environment &mlafix::runtime::environment() {
  return instance.get(readAll);
}

void mlafix::runtime::reloadEnvironmentForTesting() {
  instance.get(readAll) = readAll();
}

std::string mlafix::runtime::readLine(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}
