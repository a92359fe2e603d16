//===- Harness.h - device, units and specialisations under test -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_CONFORMANCE_HARNESS_H
#define MLAFIX_TEST_CONFORMANCE_HARNESS_H

#include "Numerics.h"
#include "examples/support/Device.h"

#include "mlafix/runtime.hpp"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace conformance {

using support::Device;
using support::Graph;
using support::Memory;

/// The command line options --device= and --units=.
struct Options {
  std::string Device = "cpu";
  std::string Units = ".";
};
Options &options();

/// Returns the device under test, opened by the first call.
Device &device();

/// Returns the path of a kernel's unit: UNITS/NAME.mlafix.
std::string unitPath(const std::string &Kernel);

/// Returns a specialisation of a kernel. Loads each unit once. Throws
/// mlafix::Error if the unit has no such specialisation.
mlafix::Kernel kernel(const std::string &Name, const std::string &Bindings);
mlafix::Kernel kernel(const std::string &Name, int64_t H, int64_t D,
                      Float Type);

/// Returns bindings such as "H=16,D=128,T=bf16".
std::string bindings(int64_t H, int64_t D, Float Type);

/// The shape of a token's payloads: the number of heads, and of elements per
/// head.
struct HeadShape {
  int64_t H, D;
};

/// A specialisation for which the kernels are tested in full.
struct HeadCase {
  HeadShape Shape;
  Float Type;
};

/// Returns all head cases. kernels/library.json lists the kernels that are
/// compiled for them.
const std::vector<HeadCase> &headCases();

/// Returns the name of a test, made of its head case and the layout of its lse.
std::string
headCaseName(const testing::TestParamInfo<std::tuple<HeadCase, bool>> &Info);

/// The fixture of tests for one head case. `KernelSetup` is MergeSetup or
/// FixupSetup.
template <typename KernelSetup>
class HeadTable : public testing::TestWithParam<std::tuple<HeadCase, bool>> {
protected:
  KernelSetup setup() const {
    KernelSetup S;
    const auto &[Case, LseRowsFirst] = GetParam();
    S.H = Case.Shape.H;
    S.D = Case.Shape.D;
    S.Type = Case.Type;
    S.LseRowsFirst = LseRowsFirst;
    return S;
  }
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
