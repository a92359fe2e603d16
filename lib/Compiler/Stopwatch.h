//===- Stopwatch.h - measures the time of each stage ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_STOPWATCH_H
#define MLAFIX_LIB_COMPILER_STOPWATCH_H

#include "mlafix/Compiler.h"
#include <chrono>

namespace mlafix {

/// Adds up the time of each named stage. Stages are in the order of their first
/// use.
class Stopwatch {
  using Clock = std::chrono::steady_clock;

public:
  /// Calls `work` and adds its time to `stage`.
  template <typename Work> auto time(const char *stage, Work work) {
    struct Recorder {
      Stopwatch &stopwatch;
      const char *stage;
      Clock::time_point start = Clock::now();
      ~Recorder() { stopwatch.add(stage, Clock::now() - start); }
    } recorder{*this, stage};
    return work();
  }

  const std::vector<Timing> &timings() const { return entries; }

private:
  void add(const char *stage, Clock::duration spent) {
    double ms = std::chrono::duration<double, std::milli>(spent).count();
    for (Timing &entry : entries)
      if (entry.stage == stage) {
        entry.milliseconds += ms;
        return;
      }
    entries.push_back({stage, ms});
  }

  std::vector<Timing> entries;
};

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_STOPWATCH_H
