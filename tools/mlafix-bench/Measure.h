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
  int rounds = 31;            ///< counted replays per implementation
  double replayMicros = 1000; ///< least duration of a replay
  int64_t rotate = 0;         ///< least bytes that all sets cover
  bool hasBaselines = false;  ///< true if --rivals was given
};

/// Microseconds per iteration: 10th percentile, median, 90th percentile.
struct Summary {
  double low = 0, median = 0, high = 0;
};
Summary summarize(std::vector<double> times);

struct ImplementationResult {
  std::string name, against;
  bool isBaseline = false, isDependent = false;
  int launches = 0;     ///< per iteration
  uint32_t threads = 0; ///< block size, if chosen by measuring
  std::string wrong;    ///< not empty: wrong result, nothing was timed
  Summary time;
};

struct Roof {
  std::string form; ///< the fastest form; empty: not measured
  Summary time;
  bool isMeasured() const { return !form.empty(); }
};

struct CaseResult {
  std::string name;
  Traffic traffic;
  int64_t sets = 0, rotated = 0;
  std::string roofMix;    ///< "2R1W"; empty: no roof
  Roof roof;              ///< for a chain of plain launches
  Roof dependentRoof;     ///< for a chain with dependent launch
  double emptyMicros = 0; ///< time of an empty launch; 0: not measured
  std::vector<ImplementationResult> implementations;
  std::string leftOut; ///< not empty: reason why the case was skipped

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
  /// Microseconds per iteration of `bytes`, from a few short replays.
  double tryOut(const std::function<void(int64_t)> &run, int64_t sets,
                int64_t bytes);

  Machine &machine;
  Units &units;
  Settings settings;
  /// The fastest form by number of streams, their bytes, and dependent launch.
  std::map<std::tuple<int, int64_t, bool>, StreamForm> roofForms;
};

/// Host time per launch, in microseconds.
struct HostResult {
  std::string name;
  Summary time;
};
std::vector<HostResult> measureHost(Machine &machine, Units &units,
                                    const Settings &settings);

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_MEASURE_H
