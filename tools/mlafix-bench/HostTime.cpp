//===- HostTime.cpp - What a launch costs the host ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Measure.h"

#include <algorithm>
#include <chrono>

using namespace mlafix;
using namespace mlafix::bench;

/// The case whose host time is measured. Its kernel takes less time than a
/// launch on any host, so the queue never fills.
static const char *const hostCase = "merge/bf16_h128_d128/n16";

namespace {
struct TimedLaunch {
  const char *name;
  std::function<void()> once;
  std::vector<double> times = {};
};
} // namespace

/// Times batches of launches. The CPU's clock rate drifts by more than the
/// implementations differ. So each round times all implementations, and rounds
/// start with different ones.
static void measure(Machine &machine, std::vector<TimedLaunch> &all,
                    int rounds) {
  constexpr int batch = 100, warmUp = 5;
  for (int round = -warmUp; round < rounds; ++round)
    for (size_t i = 0; i < all.size(); ++i) {
      TimedLaunch &now = all[(i + round + warmUp) % all.size()];
      now.once();
      machine.synchronize();
      auto begin = std::chrono::steady_clock::now();
      for (int launch = 0; launch < batch; ++launch)
        now.once();
      std::chrono::duration<double, std::micro> spent =
          std::chrono::steady_clock::now() - begin;
      machine.synchronize();
      if (round >= 0)
        now.times.push_back(spent.count() / batch);
    }
}

std::vector<HostResult> mlafix::bench::measureHost(Machine &machine,
                                                   Units &units,
                                                   const Settings &settings) {
  // On the CPU, a launch runs the kernel before it returns, so its host time is
  // not that of the launch alone.
  if (machine.device().type == MLAFIX_CPU)
    return {};
  std::vector<Case> cases = allCases();
  auto work = std::find_if(cases.begin(), cases.end(),
                           [](const Case &c) { return c.name == hostCase; });
  const Launch &launch = work->implementations.front().launches.front();
  std::string why;
  auto kernel = units.find(launch.function, launch.bindings, why);
  if (!kernel)
    return {};
  Workload buffers(machine, *work, 1);
  buffers.initialise(0);
  machine.synchronize();
  std::vector<Arg> args = buffers.arguments(launch, 0);
  detail::PackedArgs packed(kernel->get(), args.data(), args.size());
  Bound bound = kernel->bind(args, machine.device());
  mlafix_launch_info info = bound.info();
  BaselineCall driver = {info.function,
                         info.grid_x,
                         1,
                         info.block_x,
                         info.dependent != 0,
                         {info.slots, info.slots + info.num_slots}};

  std::vector<TimedLaunch> implementations = {
      {"mlafix_launch, all checks",
       [&] {
         check(mlafix_launch(kernel->get(), packed.data(), packed.size(),
                             machine.device(), machine.stream(), 0));
       }},
      {"mlafix_bound_launch",
       [&] { check(mlafix_bound_launch(bound.get(), machine.stream(), 0)); }},
      {"the driver alone", [&] { machine.launchBaseline(driver); }}};
  measure(machine, implementations, 10 * settings.rounds);
  std::vector<HostResult> results;
  for (const TimedLaunch &implementation : implementations)
    results.push_back({implementation.name, summarize(implementation.times)});
  return results;
}
