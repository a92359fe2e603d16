//===- Workload.cpp - A case in memory, ready to run ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Workload.h"
#include "Numbers.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <unistd.h>

using namespace mlafix;
using namespace mlafix::bench;

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

std::optional<Kernel> Units::find(const std::string &kernel,
                                  const std::string &bindings,
                                  std::string &why) {
  auto at = loaded.find(kernel);
  if (at == loaded.end()) {
    std::string path = folder + "/" + kernel + ".mlafix";
    std::optional<Unit> unit;
    if (access(path.c_str(), F_OK) == 0)
      unit = Unit::load(path);
    at = loaded.emplace(kernel, std::move(unit)).first;
  }
  if (!at->second) {
    why = "no unit " + kernel + ".mlafix";
    return std::nullopt;
  }
  try {
    return at->second->kernel(kernel, bindings);
  } catch (const Error &error) {
    if (error.status() != MLAFIX_NOT_FOUND)
      throw;
    why = "no " + kernel + " with " + bindings + " in its unit";
    return std::nullopt;
  }
}

//===----------------------------------------------------------------------===//
// Ready
//===----------------------------------------------------------------------===//

void Ready::run(Machine &machine, int64_t set) const {
  for (const Step &step : steps[set]) {
    if (step.bound)
      step.bound->launch(machine.stream(), flags);
    else
      machine.launchBaseline(step.call);
  }
}

bool Ready::hasDependentLaunch() const {
  for (const Step &step : steps.front())
    if (step.bound && step.bound->info().dependent)
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Workload
//===----------------------------------------------------------------------===//

/// The maximum number of sets. More sets would only make graphs longer.
static constexpr int64_t maxSets = 512;

static int64_t countSets(Machine &machine, const Case &work, int64_t rotate) {
  int64_t perSet = work.bytesPerSet();
  int64_t wanted =
      std::clamp<int64_t>((rotate + perSet - 1) / perSet, 2, maxSets);
  // Use at most two fifths of the free memory. The buffers of the roof need as
  // much again, and the rest is left to other programs.
  int64_t most = machine.freeBytes() / 5 * 2 / perSet;
  if (most < 2)
    throw std::runtime_error("needs " + std::to_string(perSet >> 20) +
                             " MiB twice, and as much for the roof");
  return std::min(wanted, most);
}

Workload::Workload(Machine &machine, const Case &work, int64_t rotate)
    : machine(machine), work(work), perSet(work.bytesPerSet()),
      numSets(countSets(machine, work, rotate)),
      arena(machine, perSet * numSets) {
  int64_t offset = 0;
  for (const Buffer &buffer : work.buffers) {
    offsets.push_back(offset);
    offset += (buffer.bytes() + 255) / 256 * 256;
  }
}

char *Workload::address(const View &view, int64_t set) const {
  size_t width = mlafix_dtype_size(work.buffers[view.buffer].type);
  return arena.base() + set * perSet + offsets[view.buffer] +
         view.offset * int64_t(width);
}

void Workload::initialise(int64_t set) {
  for (size_t i = 0; i < work.buffers.size(); ++i) {
    const Buffer &buffer = work.buffers[i];
    char *to = arena.base() + set * perSet + offsets[i];
    int64_t width = mlafix_dtype_size(buffer.type);
    if (buffer.content == Content::Poison) {
      machine.fill(to, 0xff, buffer.bytes());
      continue;
    }
    if (buffer.content == Content::Values) {
      std::vector<char> host(buffer.bytes());
      for (int64_t j = 0; j < buffer.elements(); ++j)
        fromDouble(buffer.type, buffer.values[j], host.data() + j * width);
      machine.upload(to, host.data(), buffer.bytes());
      continue;
    }
    int64_t period = patternPeriod * width;
    auto &pattern = patterns[{buffer.type, int(buffer.content)}];
    if (!pattern) {
      std::vector<char> host = makePattern(buffer.type, buffer.content);
      pattern = std::make_unique<Arena>(machine, 2 * period);
      machine.upload(pattern->base(), host.data(), period);
      machine.upload(pattern->base() + period, host.data(), period);
    }
    const char *from = pattern->base() + patternStart(int(i), set) * width;
    for (int64_t done = 0; done < buffer.bytes(); done += period)
      machine.copy(to + done, from, std::min(period, buffer.bytes() - done));
  }
}

std::vector<Arg> Workload::arguments(const Launch &launch, int64_t set) const {
  std::vector<Arg> args;
  for (const Argument &argument : launch.args) {
    switch (argument.kind) {
    case Argument::Tensor:
      args.push_back(Tensor::strided(
          address(argument.view, set), work.buffers[argument.view.buffer].type,
          argument.view.sizes, argument.view.strides, machine.device()));
      break;
    case Argument::None:
      args.push_back(Tensor::none());
      break;
    case Argument::Integer:
      args.push_back(argument.integer);
      break;
    case Argument::Real:
      args.push_back(argument.real);
      break;
    }
  }
  return args;
}

BaselineCall Workload::baselineCall(void *function, const Launch &launch,
                                    bool isDependent, uint32_t threads,
                                    int64_t set) const {
  BaselineCall call = {};
  call.function = function;
  call.isDependent = isDependent;
  call.threads = launch.threads ? launch.threads : threads;
  call.gridX = launch.gridX
                   ? launch.gridX
                   : uint32_t((launch.items + call.threads - 1) / call.threads);
  call.gridY = launch.gridY;
  for (const Argument &argument : launch.args) {
    uint64_t slot = 0;
    if (argument.kind == Argument::Tensor)
      slot = reinterpret_cast<uintptr_t>(address(argument.view, set));
    else if (argument.kind == Argument::Real)
      std::memcpy(&slot, &argument.real, sizeof(argument.real));
    else
      slot = uint64_t(argument.integer);
    call.params.push_back(slot);
  }
  return call;
}

std::optional<Ready> Workload::prepare(Units &units,
                                       const Implementation &implementation,
                                       uint32_t threads, std::string &why) {
  Ready ready;
  ready.flags = implementation.isDependent ? 0 : MLAFIX_LAUNCH_NO_DEPENDENT;
  ready.steps.resize(numSets);
  for (const Launch &launch : implementation.launches) {
    std::optional<Kernel> kernel;
    void *function = nullptr;
    if (implementation.isBaseline) {
      function = machine.findBaseline(launch.function);
      if (!function) {
        why = "no baseline " + launch.function;
        return std::nullopt;
      }
    } else {
      kernel = units.find(launch.function, launch.bindings, why);
      if (!kernel)
        return std::nullopt;
    }
    for (int64_t set = 0; set < numSets; ++set) {
      Ready::Step step;
      if (kernel)
        step.bound = kernel->bind(arguments(launch, set), machine.device());
      else
        step.call = baselineCall(function, launch, implementation.isDependent,
                                 threads, set);
      ready.steps[set].push_back(std::move(step));
    }
  }
  return ready;
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

namespace {

/// The elements of set 0 before and after a run. This class generates the
/// values before the run again. It copies the values after the run from the
/// device, in blocks and when they are needed.
class DeviceOutcome : public Outcome {
public:
  DeviceOutcome(Machine &machine, const Case &work, const char *base,
                const std::vector<int64_t> &offsets)
      : machine(machine), work(work), base(base), offsets(offsets) {}

  double before(int index, int64_t element) const override {
    const Buffer &buffer = work.buffers[index];
    if (buffer.content == Content::Values)
      return buffer.values[element];
    if (buffer.content == Content::Poison) {
      uint64_t bits = ~uint64_t(0);
      return toDouble(buffer.type, &bits);
    }
    auto &pattern = patterns[{buffer.type, int(buffer.content)}];
    if (pattern.empty())
      pattern = makePattern(buffer.type, buffer.content);
    int64_t at =
        (patternStart(index, 0) + element % patternPeriod) % patternPeriod;
    return toDouble(buffer.type,
                    pattern.data() + at * mlafix_dtype_size(buffer.type));
  }

  double after(int index, int64_t element) const override {
    const Buffer &buffer = work.buffers[index];
    int64_t width = mlafix_dtype_size(buffer.type);
    int64_t block = element * width / blockBytes;
    std::vector<char> &bytes = blocks[{index, block}];
    if (bytes.empty()) {
      int64_t begin = block * blockBytes;
      bytes.resize(std::min(blockBytes, buffer.bytes() - begin));
      machine.download(bytes.data(), base + offsets[index] + begin,
                       int64_t(bytes.size()));
    }
    return toDouble(buffer.type,
                    bytes.data() + (element * width - block * blockBytes));
  }

private:
  static constexpr int64_t blockBytes = 4096;
  Machine &machine;
  const Case &work;
  const char *base;
  const std::vector<int64_t> &offsets;
  mutable std::map<std::pair<int, int>, std::vector<char>> patterns;
  mutable std::map<std::pair<int, int64_t>, std::vector<char>> blocks;
};

} // namespace

std::string Workload::check(const Implementation &implementation) const {
  machine.synchronize();
  DeviceOutcome outcome(machine, work, arena.base(), offsets);
  outcome.roundings = implementation.roundings;
  return implementation.check ? implementation.check(outcome)
                              : work.check(outcome);
}
