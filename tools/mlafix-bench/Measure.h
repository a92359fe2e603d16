//===- Measure.h - Time what a case's contenders take -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_BENCH_MEASURE_H
#define MLAFIX_BENCH_MEASURE_H

#include "Workload.h"

namespace mlafix::bench {

struct Settings {
  int rounds = 31;            ///< replays of each contender that count
  double replayMicros = 1000; ///< least time of one replay
  int64_t rotate = 0;         ///< bytes that the sets cover at least
  bool hasRivals = false;     ///< --rivals was given
};

/// Microseconds an iteration: 10th percentile, median, 90th percentile.
struct Summary {
  double low = 0, median = 0, high = 0;
};
Summary summarize(std::vector<double> times);

struct ContenderResult {
  std::string name, against;
  bool isRival = false, isDependent = false;
  int launches = 0;     ///< of one iteration
  uint32_t threads = 0; ///< of a block, where it was chosen by measuring
  std::string wrong;    ///< not empty: the result was wrong, nothing was timed
  Summary time;
};

struct CaseResult {
  std::string name;
  Traffic traffic;
  int64_t sets = 0, rotated = 0;
  std::string roofMix; ///< "2R1W"; empty: no roof
  std::string roofForm;
  Summary roof;
  double emptyMicros = 0; ///< of an empty launch; 0: not measured
  std::vector<ContenderResult> contenders;
  std::string leftOut; ///< not empty: why the case was not measured

  const ContenderResult *find(const std::string &name) const;
  double gigabytesPerSecond(const Summary &time) const;
  double percentOfRoof(const Summary &time) const;
};

class Meter {
public:
  Meter(Machine &machine, Units &units, Settings settings)
      : machine(machine), units(units), settings(settings) {}
  CaseResult measure(const Case &work);

private:
  class Runs;
  void addRoof(const Case &work, Runs &runs, CaseResult &result);
  void addContender(const Contender &contender, Runs &runs, CaseResult &result);
  std::unique_ptr<Replay> record(const std::function<void(int64_t)> &run,
                                 int64_t sets, int64_t iterations);
  /// Microseconds an iteration, of a few short replays.
  double tryOut(const std::function<void(int64_t)> &run, int64_t sets);

  Machine &machine;
  Units &units;
  Settings settings;
  /// The best form for so many streams of so many bytes.
  std::map<std::pair<int, int64_t>, size_t> roofForms;
};

/// What a launch costs the host, in microseconds.
struct HostResult {
  std::string name;
  Summary time;
};
std::vector<HostResult> measureHost(Machine &machine, Units &units,
                                    const Settings &settings);

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_MEASURE_H
