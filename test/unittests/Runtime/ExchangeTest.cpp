//===- ExchangeTest.cpp - Launches that store to other ranks --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "PeersCall.h"

#include <cstddef>

using namespace mlafix;
using namespace mlafix::test;

namespace {

using Exchange = Peers;

UnitWriter sendingUnit() {
  return collectiveUnit(
      [](json &kernel) { kernel["args"][1]["access"] = "update"; });
}

TEST_F(Exchange, that_store_to_each_other_have_a_slot_for_each_block) {
  Unit sending = load(sendingUnit());
  kernel = sending.kernel("add_bias");
  refused({"grid of at most 0 blocks, for which the group has slots"});
  group.slots = 1000;
  call.launch(kernel);
  group.slots = fake.launches[0].grid;
  call.launch(kernel);
  for (int known = 0; known < 2; ++known) {
    group.slots = fake.launches[0].grid - 1;
    refused({"blocks, for which the group has slots"});
    group.slots = 1000;
    // The size of mlafix_group in an older header, which has no slots.
    group.struct_size = offsetof(mlafix_group, slots);
    refused({"grid of at most 0 blocks"});
    group.struct_size = sizeof(mlafix_group);
  }
  EXPECT_EQ(fake.launches.size(), 2u);
}

TEST_F(Exchange, nothing_lies_where_the_ranks_store) {
  Unit sending = load(sendingUnit());
  kernel = sending.kernel("add_bias");
  group.slots = 1000;
  auto scale = [&](float *at) {
    call.args[2] = Tensor::strided(at, MLAFIX_F32, {8}, {1}, cuda(0));
  };
  scale(call.scaleData.data());
  call.launch(kernel);
  call.launch(kernel);
  for (int rank = 0; rank < 3; ++rank) {
    scale(data[rank].data() + 4);
    refused({"\"scale\"", "apart from that of argument \"in\" of rank " +
                              std::to_string(rank)});
  }
  EXPECT_EQ(fake.launches.size(), 2u);
}

TEST_F(Exchange, a_group_of_an_older_header_reads_its_peers) {
  group.struct_size = offsetof(mlafix_group, slots);
  call.launch(kernel);
  call.launch(kernel);
  EXPECT_EQ(fake.launches.size(), 2u);
  failure = 3;
  refused({"got no launch of rank 2"}, MLAFIX_RANK_ERROR);
}

} // namespace
