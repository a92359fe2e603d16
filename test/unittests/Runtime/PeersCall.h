//===- PeersCall.h - A call with one tensor per rank ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_UNITTESTS_RUNTIME_PEERSCALL_H
#define MLAFIX_UNITTESTS_RUNTIME_PEERSCALL_H

#include "FakeCuda.h"
#include "TestUnit.h"

#include <functional>

namespace mlafix::test {

/// Returns a unit of add_bias whose input has one tensor per rank, for three
/// ranks. `change` edits the kernel in the manifest. Only the GPU code can be
/// launched, since the CPU code expects a single address for the input.
inline UnitWriter
collectiveUnit(const std::function<void(json &)> &change = {}) {
  UnitWriter writer = addBiasUnit();
  json &kernel = writer.manifest["kernels"][0];
  json &in = kernel["args"][1];
  in["kind"] = "peers";
  in["dims"] = {"ranks", "n", "D"};
  in["shape"] = {3, -1, 4};
  in["strides"] = {-1, -1, 1};
  kernel["aliases"] = json::array();
  for (json &code : kernel["code"])
    for (json &variant : code["variants"]) {
      json &params = variant["params"];
      params[1] = {{"kind", "peers"}, {"arg", 1}, {"ranks", 3}};
      params[3]["dim"] = 1;
      if (code["target"] != machineCodeTarget)
        params.push_back({{"kind", "group"}, {"ranks", 3}});
    }
  if (change)
    change(kernel);
  return writer;
}

/// A call by rank 2 in a group of three ranks.
class Peers : public testing::Test {
protected:
  FakeCuda fake;
  Unit unit = load(collectiveUnit());
  Kernel kernel = unit.kernel("add_bias");
  AddBiasCall call{8, cuda(0)};
  std::vector<float> data[3] = {std::vector<float>(32), std::vector<float>(32),
                                std::vector<float>(32)};
  void *addresses[3] = {data[0].data(), data[1].data(), data[2].data()};
  void *workspaces[3] = {reinterpret_cast<void *>(0x1000),
                         reinterpret_cast<void *>(0x2000),
                         reinterpret_cast<void *>(0x3000)};
  uint64_t failure = 0;
  int64_t sizes[2] = {8, 4};
  mlafix_tensor each =
      mlafix_contiguous(nullptr, MLAFIX_F32, 2, sizes, cuda(0));
  mlafix_group group = MLAFIX_GROUP_INIT;
  mlafix_peers peers = MLAFIX_PEERS_INIT;

  Peers() {
    fake.paramSizes = {8, 24, 8, 8, 8, 4, 48};
    group.ranks = 3;
    group.rank = 2;
    group.workspaces = workspaces;
    group.timeout_ns = 7;
    group.failure = &failure;
    peers.ranks = 3;
    peers.data = addresses;
    peers.each = &each;
    peers.group = &group;
    call.args[1] = Arg(peers);
  }
  static uint64_t bits(const void *pointer) {
    return reinterpret_cast<uintptr_t>(pointer);
  }
  void refused(const std::vector<std::string> &words,
               mlafix_status status = MLAFIX_INVALID_ARGUMENT) {
    expectError(status, words, [&] { call.launch(kernel); });
  }
};

} // namespace mlafix::test

#endif // MLAFIX_UNITTESTS_RUNTIME_PEERSCALL_H
