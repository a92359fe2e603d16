//===- Measure.h - Time what a case's implementations take ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_BENCH_MEASURE_H
#define MLAFIX_BENCH_MEASURE_H

#include "Workload.h"

#include <tuple>

namespace mlafix::bench {

struct Settings {
  int rounds = 31;            ///< replays of each implementation that count
  double replayMicros = 1000; ///< least time of one replay
  int64_t rotate = 0;         ///< bytes that the sets cover at least
  bool hasBaselines = false;  ///< --rivals was given
};

/// Microseconds an iteration: 10th percentile, median, 90th percentile.
struct Summary {
  double low = 0, median = 0, high = 0;
};
Summary summarize(std::vector<double> times);

struct ImplementationResult {
  std::string name, against;
  bool isBaseline = false, isDependent = false;
  int launches = 0;     ///< of one iteration
  uint32_t threads = 0; ///< of a block, where it was chosen by measuring
  std::string wrong;    ///< not empty: the result was wrong, nothing was timed
  Summary time;
};

struct Roof {
  std::string form; ///< the one that was best; empty: not measured
  Summary time;
  bool isMeasured() const { return !form.empty(); }
};

struct CaseResult {
  std::string name;
  Traffic traffic;
  int64_t sets = 0, rotated = 0;
  std::string roofMix;    ///< "2R1W"; empty: no roof
  Roof roof;              ///< of a chain of plain launches
  Roof dependentRoof;     ///< of a chain with dependent launch
  double emptyMicros = 0; ///< of an empty launch; 0: not measured
  std::vector<ImplementationResult> implementations;
  std::string leftOut; ///< not empty: why the case was not measured

  const ImplementationResult *find(const std::string &name) const;
  double gigabytesPerSecond(const Summary &time) const;
  static double percentOf(const Roof &roof, const Summary &time);
};

class Meter {
public:
  Meter(Machine &machine, Units &units, Settings settings)
      : machine(machine), units(units), settings(settings) {}
  CaseResult measure(const Case &work);

private:
  class Runs;
  void addRoofs(const Case &work, Runs &runs, CaseResult &result);
  void addRoof(const Stream &stream, bool isDependent, Runs &runs, Roof &roof);
  StreamForm findBestForm(const Stream &stream, bool isDependent, int64_t sets);
  std::function<void(int64_t)> streamBody(const Stream &stream,
                                          const StreamForm &form);
  void addImplementation(const Implementation &implementation, Runs &runs,
                         CaseResult &result);
  std::unique_ptr<Replay> record(const std::function<void(int64_t)> &run,
                                 int64_t sets, int64_t iterations);
  /// Microseconds an iteration that moves so many bytes, of a few short
  /// replays.
  double tryOut(const std::function<void(int64_t)> &run, int64_t sets,
                int64_t bytes);

  Machine &machine;
  Units &units;
  Settings settings;
  /// The best form for so many streams of so many bytes, without and with
  /// dependent launch.
  std::map<std::tuple<int, int64_t, bool>, StreamForm> roofForms;
};

/// The host's time for a launch, in microseconds.
struct HostResult {
  std::string name;
  Summary time;
};
std::vector<HostResult> measureHost(Machine &machine, Units &units,
                                    const Settings &settings);

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_MEASURE_H
