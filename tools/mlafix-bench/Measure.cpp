//===- Measure.cpp - Time what a case's contenders take -------------------===//
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

const ContenderResult *CaseResult::find(const std::string &wanted) const {
  for (const ContenderResult &contender : contenders)
    if (contender.name == wanted)
      return &contender;
  return nullptr;
}

double CaseResult::gigabytesPerSecond(const Summary &time) const {
  return double(traffic.total()) / time.median * 1e-3;
}

double CaseResult::percentOfRoof(const Summary &time) const {
  return 100 * roof.median / time.median;
}

/// What takes turns, round by round: clocks drift, and all drift alike.
class Meter::Runs {
public:
  Runs(Machine &machine, const Case &work, int64_t rotate)
      : buffers(machine, work, rotate) {}

  static constexpr int roof = -1, emptyLaunch = -2;
  struct Run {
    std::function<void(int64_t)> body; ///< one iteration, on a set
    std::unique_ptr<Replay> replay;
    int64_t iterations = 0;
    std::vector<double> times;
    int contender = roof; ///< an index, or one of these two
  };

  Workload buffers;
  std::unique_ptr<Arena> roofBuffers;
  std::vector<std::unique_ptr<Ready>> readies;
  std::vector<Run> runs;
};

std::unique_ptr<Replay> Meter::record(const std::function<void(int64_t)> &run,
                                      int64_t sets, int64_t iterations) {
  // A function goes on where it stopped; a graph holds what it has captured,
  // which is whole turns around the sets.
  auto next = std::make_shared<int64_t>(0);
  return machine.record([=] {
    for (int64_t i = 0; i < iterations; ++i)
      run((*next)++ % sets);
  });
}

double Meter::tryOut(const std::function<void(int64_t)> &run, int64_t sets) {
  bool isGraph = machine.device().type == MLAFIX_CUDA;
  int64_t iterations = isGraph ? std::max<int64_t>(sets, 64 / sets * sets) : 1;
  auto replay = record(run, sets, iterations);
  replay->time();
  std::vector<double> times;
  for (int i = 0; i < 5; ++i)
    times.push_back(replay->time() / double(iterations));
  return summarize(times).median;
}

void Meter::addRoof(const Case &work, Runs &runs, CaseResult &result) {
  const Traffic &traffic = work.traffic;
  if (!work.hasRoof || traffic.written == 0)
    return;
  int reads = std::min<int64_t>(
      std::llround(double(traffic.read) / double(traffic.written)),
      maxStreamReads);
  int64_t bytes =
      std::max<int64_t>(traffic.total() / (reads + 1) / 16 * 16, 16);
  int64_t perSet = bytes * (reads + 1), sets = runs.buffers.sets();
  runs.roofBuffers = std::make_unique<Arena>(machine, perSet * sets);
  // The same random bytes as the case's.
  for (int64_t done = 0; done < perSet * sets; done += runs.buffers.bytes())
    machine.copy(runs.roofBuffers->base() + done, runs.buffers.base(),
                 std::min(runs.buffers.bytes(), perSet * sets - done));
  machine.synchronize();
  char *base = runs.roofBuffers->base();
  auto body = [=](size_t form) {
    return [=](int64_t set) {
      char *from = base + set * perSet;
      machine.runStream({reads, from, from + reads * bytes, bytes}, form);
    };
  };
  std::vector<std::string> names = machine.streamForms(reads);
  auto known = roofForms.find({reads, bytes});
  if (known == roofForms.end()) {
    double least = 0;
    size_t best = 0;
    for (size_t form = 0; form < names.size(); ++form) {
      double micros = tryOut(body(form), sets);
      if (form == 0 || micros < least) {
        least = micros;
        best = form;
      }
    }
    known = roofForms.emplace(std::make_pair(reads, bytes), best).first;
  }
  result.roofMix = std::to_string(reads) + "R1W";
  result.roofForm = names[known->second];
  Runs::Run run;
  run.body = body(known->second);
  runs.runs.push_back(std::move(run));
}

void Meter::addContender(const Contender &contender, Runs &runs,
                         CaseResult &result) {
  // Without a file of rivals there is nothing to say about each.
  if (contender.isRival && !settings.hasRivals)
    return;
  bool isGpu = machine.device().type == MLAFIX_CUDA;
  if (contender.isDependent && !isGpu)
    return;
  bool isOpen =
      contender.isRival &&
      std::any_of(contender.launches.begin(), contender.launches.end(),
                  [](const Launch &launch) { return launch.threads == 0; });
  std::unique_ptr<Ready> best;
  uint32_t bestThreads = 0;
  double least = 0;
  for (uint32_t threads : {128u, 256u, 512u}) {
    std::string why;
    auto ready = runs.buffers.prepare(units, contender, threads, why);
    if (!ready)
      return;
    if (!contender.isRival && contender.isDependent &&
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
               runs.buffers.sets());
    if (!best || micros < least) {
      best = std::move(candidate);
      bestThreads = threads;
      least = micros;
    }
  }
  ContenderResult entry;
  entry.name = contender.name;
  entry.against = contender.against;
  entry.isRival = contender.isRival;
  entry.isDependent = contender.isDependent;
  entry.launches = int(contender.launches.size());
  entry.threads = bestThreads;
  runs.buffers.initialise(0);
  machine.synchronize();
  best->run(machine, 0);
  entry.wrong = runs.buffers.check(contender);
  runs.buffers.initialise(0);
  if (entry.wrong.empty()) {
    Runs::Run run;
    const Ready *ready = best.get();
    run.body = [this, ready](int64_t set) { ready->run(machine, set); };
    run.contender = int(result.contenders.size());
    runs.runs.push_back(std::move(run));
    runs.readies.push_back(std::move(best));
  }
  result.contenders.push_back(std::move(entry));
}

CaseResult Meter::measure(const Case &work) {
  CaseResult result;
  result.name = work.name;
  result.traffic = work.traffic;
  // Before any memory: most often this is why a case is left out.
  for (const Launch &launch : work.contenders.front().launches)
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
  for (const Contender &contender : work.contenders)
    addContender(contender, *all, result);
  addRoof(work, *all, result);
  if (!work.hasRoof && machine.hasEmptyLaunch()) {
    Runs::Run run;
    run.body = [this](int64_t) { machine.launchEmpty(); };
    run.contender = Runs::emptyLaunch;
    all->runs.push_back(std::move(run));
  }
  bool isGraph = machine.device().type == MLAFIX_CUDA;
  for (Runs::Run &run : all->runs) {
    double micros = tryOut(run.body, sets);
    auto wanted = int64_t(settings.replayMicros / micros) + 1;
    // Long graphs take long to make.
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
    if (run.contender >= 0)
      result.contenders[run.contender].time = summary;
    else if (run.contender == Runs::roof)
      result.roof = summary;
    else
      result.emptyMicros = summary.median;
  }
  return result;
}
