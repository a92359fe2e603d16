//===- Harness.cpp - device, units and specialisations under test ---------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include <cstdio>
#include <map>

using namespace conformance;

Options &conformance::options() {
  static Options Parsed;
  return Parsed;
}

Device &conformance::device() {
  static std::unique_ptr<Device> Opened = support::openDevice(options().Device);
  return *Opened;
}

std::string conformance::unitPath(const std::string &Kernel) {
  return options().Units + "/" + Kernel + ".mlafix";
}

std::string conformance::bindings(int64_t H, int64_t D, Float Type) {
  return "H=" + std::to_string(H) + ",D=" + std::to_string(D) +
         ",T=" + spelling(Type);
}

mlafix::Kernel conformance::kernel(const std::string &Name,
                                   const std::string &Bindings) {
  static std::map<std::string, mlafix::Unit> Loaded;
  auto Found = Loaded.find(Name);
  if (Found == Loaded.end())
    Found = Loaded.emplace(Name, mlafix::Unit::load(unitPath(Name))).first;
  return Found->second.kernel(Name, Bindings);
}

mlafix::Kernel conformance::kernel(const std::string &Name, int64_t H,
                                   int64_t D, Float Type) {
  return kernel(Name, bindings(H, D, Type));
}

const std::vector<HeadCase> &conformance::headCases() {
  // Three sizes: a row shorter than a pack, a row of whole packs, and a row
  // that several warps of a GPU share and a CPU processes in a loop.
  static const std::vector<HeadCase> Cases = [] {
    std::vector<HeadCase> All;
    for (HeadShape Shape :
         {HeadShape{6, 3}, HeadShape{16, 128}, HeadShape{1, 576}})
      for (Float Type : {Float::BF16, Float::F16, Float::F32})
        All.push_back({Shape, Type});
    return All;
  }();
  return Cases;
}

std::string conformance::headCaseName(
    const testing::TestParamInfo<std::tuple<HeadCase, bool>> &Info) {
  const auto &[Case, LseRowsFirst] = Info.param;
  return "H" + std::to_string(Case.Shape.H) + "_D" +
         std::to_string(Case.Shape.D) + "_" + spelling(Case.Type) +
         (LseRowsFirst ? "_lse_nH" : "_lse_Hn");
}

int main(int Argc, char **Argv) {
  testing::InitGoogleTest(&Argc, Argv);
  for (int I = 1; I < Argc; ++I) {
    std::string Text = Argv[I];
    if (Text.rfind("--device=", 0) == 0) {
      options().Device = Text.substr(9);
    } else if (Text.rfind("--units=", 0) == 0) {
      options().Units = Text.substr(8);
    } else {
      std::fprintf(stderr,
                   "mlafix-conformance: expected --device=cpu|cuda:N, "
                   "--units=DIR or --gtest_*, got '%s'\n",
                   Argv[I]);
      return 2;
    }
  }
  try {
    std::printf("device: %s (%s)\n", options().Device.c_str(),
                device().name().c_str());
  } catch (const std::exception &Error) {
    std::fprintf(stderr, "mlafix-conformance: %s\n", Error.what());
    return 2;
  }
  return RUN_ALL_TESTS();
}
