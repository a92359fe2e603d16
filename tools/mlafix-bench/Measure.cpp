//===- Measure.cpp - Times a case's implementations -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Measure.h"
#include "StreamPtx.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

using namespace mlafix::bench;

Summary mlafix::bench::summarize(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  auto at = [&](double part) {
    return times[size_t(part * double(times.size() - 1) + 0.5)];
  };
  return {at(0.1), at(0.5), at(0.9)};
}

const ImplementationResult *CaseResult::find(const std::string &wanted) const {
  for (const ImplementationResult &implementation : implementations)
    if (implementation.name == wanted)
      return &implementation;
  return nullptr;
}

double CaseResult::gigabytesPerSecond(const Summary &time) const {
  return double(traffic.total()) / time.median * 1e-3;
}

double CaseResult::percentOf(const Roof &roof, const Summary &time) {
  return 100 * roof.time.median / time.median;
}

/// The launches that are timed for one case: those of its implementations, of
/// the roofs, and an empty one. They are timed in turn, so that clock drift
/// affects all equally.
class Meter::Runs {
public:
  Runs(Machine &machine, const Case &work, int64_t rotate)
      : buffers(machine, work, rotate) {}

  static constexpr int roof = -1, emptyLaunch = -2, dependentRoof = -3;
  struct Run {
    /// Runs one iteration. Its argument is the index of a set of buffers.
    std::function<void(int64_t)> body;
    std::unique_ptr<Replay> replay;
    int64_t iterations = 0;
    std::vector<double> times;
    /// The index of an implementation, or `roof`, `emptyLaunch` or
    /// `dependentRoof`.
    int implementation = roof;
  };

  void add(int implementation, std::function<void(int64_t)> body) {
    Run &run = runs.emplace_back();
    run.body = std::move(body);
    run.implementation = implementation;
  }

  Workload buffers;
  std::unique_ptr<Arena> roofBuffers;
  std::vector<std::unique_ptr<Ready>> readies;
  std::vector<Run> runs;
};

std::unique_ptr<Replay> Meter::record(const std::function<void(int64_t)> &run,
                                      int64_t sets, int64_t iterations) {
  // On the CPU, each replay calls the lambda below, which continues with the
  // set after the last one of the preceding replay. A CUDA graph always replays
  // the sets with which it was captured, so `iterations` must be a multiple of
  // `sets` for a graph.
  auto next = std::make_shared<int64_t>(0);
  return machine.record([=] {
    for (int64_t i = 0; i < iterations; ++i)
      run((*next)++ % sets);
  });
}

double Meter::tryOut(const std::function<void(int64_t)> &run, int64_t sets,
                     int64_t bytes) {
  // Use enough iterations that the cost of starting a replay hardly counts, but
  // not more, since many forms are tried.
  constexpr int64_t most = 64, enoughBytes = int64_t(2) << 30;
  bool isGraph = machine.device().type == MLAFIX_CUDA;
  int64_t wanted = std::min(most, enoughBytes / std::max<int64_t>(bytes, 1));
  int64_t iterations =
      isGraph ? std::max<int64_t>(sets, wanted / sets * sets) : 1;
  auto replay = record(run, sets, iterations);
  replay->time();
  std::vector<double> times;
  for (int i = 0; i < 5; ++i)
    times.push_back(replay->time() / double(iterations));
  return summarize(times).median;
}

/// Returns the bytes of all streams of one iteration, for one set of buffers.
static int64_t bytesOf(const Stream &stream) {
  return stream.bytes * (stream.reads + 1);
}

std::function<void(int64_t)> Meter::streamBody(const Stream &stream,
                                               const StreamForm &form) {
  return [=](int64_t set) {
    Stream here = stream;
    here.from += set * bytesOf(stream);
    here.to += set * bytesOf(stream);
    machine.runStream(here, form);
  };
}

/// Finds the fastest form without trying all pairs. Tries all shapes with the
/// first schedule, and then all schedules with the best shape. If another
/// schedule is faster, tries all shapes with it.
StreamForm Meter::findBestForm(const Stream &stream, bool isDependent,
                               int64_t sets) {
  auto key = std::make_tuple(stream.reads, stream.bytes, isDependent);
  auto known = roofForms.find(key);
  if (known != roofForms.end())
    return known->second;
  StreamForms forms = machine.streamForms(stream.reads, isDependent);
  StreamForm best = {0, 0, isDependent};
  double least = INFINITY;
  auto consider = [&](StreamForm form) {
    double micros = tryOut(streamBody(stream, form), sets, bytesOf(stream));
    if (micros >= least)
      return;
    least = micros;
    best = form;
  };
  auto considerShapes = [&](size_t schedule) {
    for (size_t shape = 0; shape < forms.shapes.size(); ++shape)
      consider({shape, schedule, isDependent});
  };
  considerShapes(0);
  size_t shape = best.shape;
  for (size_t schedule = 1; schedule < forms.schedules.size(); ++schedule)
    consider({shape, schedule, isDependent});
  if (best.schedule != 0)
    considerShapes(best.schedule);
  return roofForms.emplace(key, best).first->second;
}

void Meter::addRoof(const Stream &stream, bool isDependent, Runs &runs,
                    Roof &roof) {
  StreamForm form = findBestForm(stream, isDependent, runs.buffers.sets());
  StreamForms names = machine.streamForms(stream.reads, isDependent);
  roof.form = names.shapes[form.shape];
  if (const std::string &schedule = names.schedules[form.schedule];
      !schedule.empty())
    roof.form += "; " + schedule;
  runs.add(isDependent ? Runs::dependentRoof : Runs::roof,
           streamBody(stream, form));
}

void Meter::addRoofs(const Case &work, Runs &runs, CaseResult &result) {
  const Traffic &traffic = work.traffic;
  if (!work.hasRoof || traffic.written == 0)
    return;
  int reads = std::min<int64_t>(
      std::llround(double(traffic.read) / double(traffic.written)),
      maxStreamReads);
  int64_t bytes =
      std::max<int64_t>(traffic.total() / (reads + 1) / 16 * 16, 16);
  int64_t perSet = bytes * (reads + 1), whole = perSet * runs.buffers.sets();
  runs.roofBuffers = std::make_unique<Arena>(machine, whole);
  // Fill the roof's buffers with the random bytes of the case's buffers.
  for (int64_t done = 0; done < whole; done += runs.buffers.bytes())
    machine.copy(runs.roofBuffers->base() + done, runs.buffers.base(),
                 std::min(runs.buffers.bytes(), whole - done));
  machine.synchronize();
  char *base = runs.roofBuffers->base();
  Stream stream = {reads, base, base + reads * bytes, bytes};
  result.roofMix = std::to_string(reads) + "R1W";
  addRoof(stream, /*isDependent=*/false, runs, result.roof);
  if (machine.hasDependentLaunch())
    addRoof(stream, /*isDependent=*/true, runs, result.dependentRoof);
}

void Meter::addImplementation(const Implementation &implementation, Runs &runs,
                              CaseResult &result) {
  // If there is no file of baselines, skip all baselines.
  if (implementation.isBaseline && !settings.hasBaselines)
    return;
  if (implementation.isDependent && machine.device().type != MLAFIX_CUDA)
    return;
  const std::vector<Launch> &launches = implementation.launches;
  bool isOpen =
      implementation.isBaseline &&
      std::any_of(launches.begin(), launches.end(),
                  [](const Launch &launch) { return launch.threads == 0; });
  ImplementationResult entry;
  entry.name = implementation.name;
  entry.against = implementation.against;
  entry.isBaseline = implementation.isBaseline;
  entry.isDependent = implementation.isDependent;
  entry.launches = int(launches.size());
  std::unique_ptr<Ready> best;
  double least = 0;
  for (uint32_t threads : {128u, 256u, 512u}) {
    auto ready =
        runs.buffers.prepare(units, implementation, threads, entry.leftOut);
    if (!ready) {
      result.implementations.push_back(std::move(entry));
      return;
    }
    if (!implementation.isBaseline && implementation.isDependent &&
        !ready->hasDependentLaunch())
      return;
    auto candidate = std::make_unique<Ready>(std::move(*ready));
    if (!isOpen) {
      best = std::move(candidate);
      break;
    }
    const Ready *current = candidate.get();
    double micros =
        tryOut([this, current](int64_t set) { current->run(machine, set); },
               runs.buffers.sets(), result.traffic.total());
    if (!best || micros < least) {
      best = std::move(candidate);
      entry.threads = threads;
      least = micros;
    }
  }
  runs.buffers.initialise(0);
  machine.synchronize();
  best->run(machine, 0);
  entry.wrong = runs.buffers.check(implementation);
  runs.buffers.initialise(0);
  if (entry.wrong.empty()) {
    const Ready *ready = best.get();
    runs.add(int(result.implementations.size()),
             [this, ready](int64_t set) { ready->run(machine, set); });
    runs.readies.push_back(std::move(best));
  }
  result.implementations.push_back(std::move(entry));
}

CaseResult Meter::measure(const Case &work) {
  CaseResult result;
  result.name = work.name;
  result.traffic = work.traffic;
  // Look kernels up before allocating. A missing kernel is the most common
  // reason to skip a case.
  for (const Launch &launch : work.implementations.front().launches)
    if (!units.find(launch.function, launch.bindings, result.leftOut))
      return result;
  std::unique_ptr<Runs> all;
  try {
    all = std::make_unique<Runs>(machine, work, settings.rotate);
  } catch (const std::runtime_error &error) {
    result.leftOut = error.what();
    return result;
  }
  int64_t sets = all->buffers.sets();
  result.sets = sets;
  result.rotated = all->buffers.bytes();
  for (int64_t set = 0; set < sets; ++set)
    all->buffers.initialise(set);
  machine.synchronize();
  for (const Implementation &implementation : work.implementations)
    addImplementation(implementation, *all, result);
  addRoofs(work, *all, result);
  if (!work.hasRoof && machine.hasEmptyLaunch())
    all->add(Runs::emptyLaunch, [this](int64_t) { machine.launchEmpty(); });
  bool isGraph = machine.device().type == MLAFIX_CUDA;
  for (Runs::Run &run : all->runs) {
    double micros = tryOut(run.body, sets, result.traffic.total());
    auto wanted = int64_t(settings.replayMicros / micros) + 1;
    // Limit the iterations, since long graphs take long to build.
    wanted = std::min<int64_t>(wanted, 2048);
    run.iterations = isGraph ? (wanted + sets - 1) / sets * sets : wanted;
    run.replay = record(run.body, sets, run.iterations);
  }
  constexpr int warmUp = 2;
  for (int round = -warmUp; round < settings.rounds; ++round)
    for (Runs::Run &run : all->runs) {
      double micros = run.replay->time() / double(run.iterations);
      if (round >= 0)
        run.times.push_back(micros);
    }
  for (Runs::Run &run : all->runs) {
    Summary summary = summarize(run.times);
    if (run.implementation >= 0)
      result.implementations[run.implementation].time = summary;
    else if (run.implementation == Runs::roof)
      result.roof.time = summary;
    else if (run.implementation == Runs::dependentRoof)
      result.dependentRoof.time = summary;
    else
      result.emptyMicros = summary.median;
  }
  return result;
}
