//===- Harness.h - device, units and tensors under test ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_CONFORMANCE_HARNESS_H
#define MLAFIX_TEST_CONFORMANCE_HARNESS_H

#include "examples/support/Device.h"

#include "mlafix/runtime.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace conformance {

using support::Device;
using support::Memory;

/// The command line options --device= and --units=.
struct Options {
  std::string Device = "cpu";
  std::string Units = ".";
};
Options &options();

/// Returns the device under test, opened by the first call.
Device &device();

/// Returns a specialisation of a kernel, from the unit UNITS/NAME.mlafix. Loads
/// each unit once. Throws mlafix::Error if the unit has no such specialisation.
mlafix::Kernel kernel(const std::string &Name, const std::string &Bindings);
/// Returns the specialisation for rows of H heads of D elements in bf16.
mlafix::Kernel kernel(const std::string &Name, int64_t H, int64_t D);

/// Returns a contiguous tensor of the device.
mlafix::Tensor tensor(const Memory &Data, mlafix_dtype Type,
                      const std::vector<int64_t> &Sizes);
/// Returns an lse that is [N, H] in memory, as the view [H, N] that kernels
/// take.
mlafix::Tensor lseOfTokens(const void *Data, int64_t N, int64_t H);

/// Applies SplitMix64's finaliser to a number. Tests use it for random choices
/// that do not depend on the order of the calls.
uint64_t hash(uint64_t Value);

/// A reproducible stream of numbers: a counter hashed by SplitMix64.
class Random {
public:
  explicit Random(uint64_t Seed) : State(Seed) {}
  uint64_t next() { return hash(State += 0x9e3779b97f4a7c15ull); }
  /// Returns an integer that is uniformly distributed in [0, Count).
  uint64_t below(uint64_t Count) { return next() % Count; }
  /// Returns the bits of a bf16 from 0.5 to 2, with either sign.
  uint16_t bf16() { return uint16_t(0x3f00 | (next() & 0x80ff)); }

private:
  uint64_t State;
};

/// The default flags of launches in these tests. With deep checks, the runtime
/// asks the driver about each pointer.
constexpr uint32_t LaunchFlags = MLAFIX_LAUNCH_DEEP_CHECKS;

/// Skips a test that only a GPU can run.
#define MLAFIX_NEEDS_CUDA()                                                    \
  do {                                                                         \
    if (!conformance::device().isCuda())                                       \
      GTEST_SKIP() << "runs on a CUDA device only";                            \
  } while (false)

} // namespace conformance

#endif // MLAFIX_TEST_CONFORMANCE_HARNESS_H
