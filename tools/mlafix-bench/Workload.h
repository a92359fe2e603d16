//===- Workload.h - A case in memory, ready to run --------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_BENCH_WORKLOAD_H
#define MLAFIX_BENCH_WORKLOAD_H

#include "Case.h"
#include "Machine.h"

#include "mlafix/runtime.hpp"

#include <map>
#include <optional>

namespace mlafix::bench {

/// The compiled kernels in DIR/KERNEL.mlafix. A unit is loaded when it is first
/// needed.
class Units {
public:
  explicit Units(std::string folder) : folder(std::move(folder)) {}
  /// Finds a kernel. If the folder does not have it, sets `why` and returns
  /// nullopt. Throws if the unit exists but cannot be used.
  std::optional<Kernel> find(const std::string &kernel,
                             const std::string &bindings, std::string &why);

private:
  std::string folder;
  std::map<std::string, std::optional<Unit>> loaded;
};

/// The launches of an implementation, bound to the buffers of each set.
class Ready {
public:
  void run(Machine &machine, int64_t set) const;
  /// Returns true if a launch of mlafix has the dependent-launch attribute.
  bool hasDependentLaunch() const;

private:
  friend class Workload;
  struct Step {
    std::optional<Bound> bound;
    BaselineCall call;
  };
  std::vector<std::vector<Step>> steps; ///< by set, and then by launch
  uint32_t flags = 0;
};

/// The buffers of a case. There are enough sets of them to exceed the cache.
class Workload {
public:
  /// `rotate` is the least number of bytes of all sets together.
  Workload(Machine &machine, const Case &work, int64_t rotate);

  int64_t sets() const { return numSets; }
  int64_t bytes() const { return numSets * perSet; }
  char *base() const { return arena.base(); }

  /// Fills the buffers of a set with the contents that the case describes.
  void initialise(int64_t set);

  /// Binds the launches of an implementation. If a kernel or function is
  /// missing, sets `why` and returns nullopt. `threads` is the block size for
  /// baselines that have no fixed one.
  std::optional<Ready> prepare(Units &units,
                               const Implementation &implementation,
                               uint32_t threads, std::string &why);

  /// Returns the arguments of a launch of mlafix.
  std::vector<Arg> arguments(const Launch &launch, int64_t set) const;

  /// Checks the results of the implementation in set 0. Returns "" if they are
  /// right, else a sentence about the error.
  std::string check(const Implementation &implementation) const;

private:
  char *address(const View &view, int64_t set) const;
  BaselineCall baselineCall(void *function, const Launch &launch,
                            bool isDependent, uint32_t threads,
                            int64_t set) const;

  Machine &machine;
  const Case &work;
  int64_t perSet, numSets;
  std::vector<int64_t>
      offsets; ///< offset in bytes of each buffer within its set
  Arena arena;
  /// Two periods of random elements on the device, for each dtype and content.
  std::map<std::pair<int, int>, std::unique_ptr<Arena>> patterns;
};

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_WORKLOAD_H
