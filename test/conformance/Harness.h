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

/// The options of the command line: --device=, --units=.
struct Options {
  std::string Device = "cpu";
  std::string Units = ".";
};
Options &options();

/// The device under test; opened once.
Device &device();

/// Where the unit of a kernel lies: UNITS/NAME.mlafix.
std::string unitPath(const std::string &Kernel);

/// The specialisation of a kernel; units are loaded once. Throws mlafix::Error
/// if the unit holds none such.
mlafix::Kernel kernel(const std::string &Name, const std::string &Bindings);
mlafix::Kernel kernel(const std::string &Name, int64_t H, int64_t D,
                      Float Type);

/// "H=16,D=128,T=bf16".
std::string bindings(int64_t H, int64_t D, Float Type);

/// Payload shape of a row of states: heads and elements a head.
struct HeadShape {
  int64_t H, D;
};

/// A specialisation of the kernels that are tested in full.
struct HeadCase {
  HeadShape Shape;
  Float Type;
};

/// All of them: kernels/library.json compiles the kernels for these.
const std::vector<HeadCase> &headCases();

/// The name of a test of a case and of whether its lse lies as [n, H].
std::string
headCaseName(const testing::TestParamInfo<std::tuple<HeadCase, bool>> &Info);

/// Tests of such a case. A KernelSetup (MergeSetup, FixupSetup) has its fields.
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

/// Flags of every launch here: the runtime asks the driver about pointers.
constexpr uint32_t LaunchFlags = MLAFIX_LAUNCH_DEEP_CHECKS;

/// Skips a test that only a GPU can run.
#define MLAFIX_NEEDS_CUDA()                                                    \
  do {                                                                         \
    if (!conformance::device().isCuda())                                       \
      GTEST_SKIP() << "runs on a CUDA device only";                            \
  } while (false)

} // namespace conformance

#endif // MLAFIX_TEST_CONFORMANCE_HARNESS_H
