//===- Harness.cpp - device, units and tensors under test -----------------===//
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

mlafix::Kernel conformance::kernel(const std::string &Name,
                                   const std::string &Bindings) {
  static std::map<std::string, mlafix::Unit> Loaded;
  auto Found = Loaded.find(Name);
  if (Found == Loaded.end()) {
    std::string Path = options().Units + "/" + Name + ".mlafix";
    Found = Loaded.emplace(Name, mlafix::Unit::load(Path)).first;
  }
  return Found->second.kernel(Name, Bindings);
}

mlafix::Kernel conformance::kernel(const std::string &Name, int64_t H,
                                   int64_t D) {
  return kernel(Name, "H=" + std::to_string(H) + ",D=" + std::to_string(D) +
                          ",T=bf16");
}

mlafix::Tensor conformance::tensor(const Memory &Data, mlafix_dtype Type,
                                   const std::vector<int64_t> &Sizes) {
  return mlafix::Tensor::contiguous(Data.data(), Type, Sizes,
                                    device().handle());
}

mlafix::Tensor conformance::lseOfTokens(const void *Data, int64_t N,
                                        int64_t H) {
  return mlafix::Tensor::strided(Data, MLAFIX_F32, {H, N}, {1, H},
                                 device().handle());
}

uint64_t conformance::hash(uint64_t Value) {
  Value = (Value ^ (Value >> 30)) * 0xbf58476d1ce4e5b9ull;
  Value = (Value ^ (Value >> 27)) * 0x94d049bb133111ebull;
  return Value ^ (Value >> 31);
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
