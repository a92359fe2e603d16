//===- Measure.h - Times a case's implementations ---------------*- C++ -*-===//
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
  double replayMicros = 1000; ///< least duration of a replay, in microseconds
  int64_t rotate = 0;         ///< least total bytes of all sets
  bool hasBaselines = false;  ///< true if --rivals was given
};

/// The 10th percentile, the median and the 90th percentile of the times per
/// iteration, in microseconds.
struct Summary {
  double low = 0, median = 0, high = 0;
};
Summary summarize(std::vector<double> times);

struct ImplementationResult {
  std::string name, against;
  bool isBaseline = false, isDependent = false;
  int launches = 0;     ///< number of launches per iteration
  uint32_t threads = 0; ///< block size, if it was measured; else 0
  std::string leftOut;  ///< reason why it was not run; else ""
  std::string wrong;    ///< error in the result; else ""
  Summary time;

  bool isTimed() const { return leftOut.empty() && wrong.empty(); }
};

struct Roof {
  std::string form; ///< name of the fastest form; "": not measured
  Summary time;
  bool isMeasured() const { return !form.empty(); }
};

struct CaseResult {
  std::string name;
  Traffic traffic;
  int64_t sets = 0, rotated = 0;
  std::string roofMix;    ///< such as "2R1W"; "": no roof
  Roof roof;              ///< the roof of a chain of plain launches
  Roof dependentRoof;     ///< the roof of a chain with dependent launch
  double emptyMicros = 0; ///< microseconds of an empty launch; 0: not measured
  std::vector<ImplementationResult> implementations;
  std::string leftOut; ///< reason why the case was skipped; else ""

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
  /// Estimates the microseconds per iteration from a few short replays. An
  /// iteration moves `bytes` bytes.
  double tryOut(const std::function<void(int64_t)> &run, int64_t sets,
                int64_t bytes);

  Machine &machine;
  Units &units;
  Settings settings;
  /// The fastest forms. A key has the number of streams read, the bytes of a
  /// stream, and whether launches are dependent.
  std::map<std::tuple<int, int64_t, bool>, StreamForm> roofForms;
};

/// The host time per launch, in microseconds.
struct HostResult {
  std::string name;
  Summary time;
};
std::vector<HostResult> measureHost(Machine &machine, Units &units,
                                    const Settings &settings);

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_MEASURE_H
