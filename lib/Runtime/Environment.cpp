//===- Environment.cpp - Every environment variable of the runtime --------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Environment.h"

#include "Fork.h"
#include "UnitModel.h"

#include "mlafix/runtime.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

using namespace mlafix::runtime;

namespace {

/// One environment variable. If its value is invalid, that is reported on
/// stderr and the variable counts as not set.
class Setting {
public:
  explicit Setting(const char *name) : name(name) {
    if (const char *set = std::getenv(name))
      value = set;
  }

  /// An empty value counts as not set.
  bool isSet() const { return !value.empty(); }
  const std::string &text() const { return value; }

  bool isFlag() const {
    for (const char *yes : {"1", "on", "true", "yes"})
      if (value == yes)
        return true;
    for (const char *no : {"", "0", "off", "false", "no"})
      if (value == no)
        return false;
    refuse("0 or 1");
    return false;
  }

  /// Returns the value as an integer from `least` to `most`, or `otherwise` if
  /// the variable is not set.
  int64_t number(int64_t least, int64_t most, int64_t otherwise) const {
    if (!isSet())
      return otherwise;
    char *end = nullptr;
    errno = 0;
    long long number = std::strtoll(value.c_str(), &end, 10);
    if (*end == '\0' && errno == 0 && least <= number && number <= most)
      return number;
    refuse(("a number from " + std::to_string(least) + " to " +
            std::to_string(most))
               .c_str());
    return otherwise;
  }

  void refuse(const char *expected) const {
    std::fprintf(stderr,
                 "mlafix: expected %s to be %s, got \"%s\"; it counts as not "
                 "set\n",
                 name, expected, value.c_str());
  }

private:
  const char *name;
  std::string value;
};

int readLogLevel() {
  Setting level("MLAFIX_LOG");
  if (level.text() == "debug")
    return MLAFIX_LOG_DEBUG;
  if (level.text() == "info")
    return MLAFIX_LOG_INFO;
  if (level.text() == "warning")
    return MLAFIX_LOG_WARNING;
  if (level.isSet())
    level.refuse("debug, info or warning");
  return Environment().logLevel;
}

Environment readAll() {
  constexpr int mostThreads = 1024;
  Environment result;
  result.numThreads =
      static_cast<int>(Setting("MLAFIX_NUM_THREADS").number(1, mostThreads, 0));
  result.noDependentLaunch = Setting("MLAFIX_NO_DEPENDENT_LAUNCH").isFlag();
  Setting target("MLAFIX_CPU_TARGET");
  if (target.isSet() && cpuLevelOf(target.text()) < 0)
    target.refuse("a target of this machine's architecture, such as "
                  "x86-64-v3 or aarch64");
  else
    result.cpuTarget = target.text();
  result.cpuCacheBytes =
      Setting("MLAFIX_CPU_CACHE_BYTES").number(0, INT64_MAX, -1);
  result.logLevel = readLogLevel();
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

std::vector<std::string> mlafix::runtime::readLines(const std::string &path) {
  struct Closer {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  std::vector<std::string> lines;
  std::unique_ptr<std::FILE, Closer> file(std::fopen(path.c_str(), "re"));
  bool inLine = false;
  for (int c; file && (c = std::getc(file.get())) != EOF; inLine = c != '\n') {
    if (!inLine)
      lines.emplace_back();
    if (c != '\n')
      lines.back() += static_cast<char>(c);
  }
  return lines;
}

std::string mlafix::runtime::readLine(const std::string &path) {
  std::vector<std::string> lines = readLines(path);
  return lines.empty() ? "" : lines.front();
}
