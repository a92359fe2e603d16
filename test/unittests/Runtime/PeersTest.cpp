//===- PeersTest.cpp - Arguments with one tensor per rank -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "PeersCall.h"
#include "Unit.h"

using namespace mlafix;
using namespace mlafix::test;

namespace {

json &gpuParams(json &kernel) {
  return kernel["code"][1]["variants"][0]["params"];
}

struct Spoilt {
  const char *name;
  std::function<void(json &kernel)> spoil;
  std::vector<std::string> words;
};
void PrintTo(const Spoilt &spoilt, std::ostream *stream) {
  *stream << spoilt.name;
}

class SpoiltPeers : public testing::TestWithParam<Spoilt> {};

TEST_P(SpoiltPeers, do_not_load) {
  load(collectiveUnit());
  expectBadUnit(collectiveUnit(GetParam().spoil), GetParam().words);
}

INSTANTIATE_TEST_SUITE_P(
    Manifest, SpoiltPeers,
    testing::Values(
        Spoilt{"written",
               [](json &k) { k["args"][1]["access"] = "write"; },
               {"args[1].access", "\"read\""}},
        Spoilt{"optional",
               [](json &k) { k["args"][1]["optional"] = true; },
               {"args[1].access", "not optional"}},
        Spoilt{"too_many_ranks",
               [](json &k) { k["args"][1]["shape"][0] = 73; },
               {"args[1].dims", "at most 72"}},
        Spoilt{"no_dims_but_ranks",
               [](json &k) {
                 k["args"][1]["dims"] = {"ranks"};
                 k["args"][1]["shape"] = {-1};
                 k["args"][1]["strides"] = {-1};
               },
               {"args[1].dims", "the dims of each"}},
        Spoilt{"table_of_a_tensor",
               [](json &k) { gpuParams(k)[1]["arg"] = 0; },
               {"params[1].arg", "an argument of several tensors"}},
        Spoilt{"table_for_fewer_ranks",
               [](json &k) { gpuParams(k)[1]["ranks"] = 2; },
               {"params[1].ranks", "as many as \"in\" may have"}},
        Spoilt{"table_for_too_many",
               [](json &k) { gpuParams(k)[6]["ranks"] = 73; },
               {"params[6].ranks", "73"}},
        Spoilt{"any_ranks_but_tables_for_three",
               [](json &k) { k["args"][1]["shape"][0] = -1; },
               {"ranks", "as many as \"in\" may have"}},
        Spoilt{"group_of_a_kernel_that_is_not_collective",
               [](json &k) {
                 k["args"][1] = k["args"][0];
                 k["args"][1]["name"] = "in";
                 k["args"][1]["access"] = "read";
                 for (json &code : k["code"])
                   for (json &variant : code["variants"])
                     variant["params"][1] = {{"kind", "pointer"}, {"arg", 1}};
               },
               {"kind", "not collective"}},
        Spoilt{"group_of_a_list",
               [](json &k) {
                 k["args"][1]["kind"] = "list";
                 k["args"][1]["most"] = 3;
               },
               {"kind", "not collective"}},
        Spoilt{"list_without_a_bound",
               [](json &k) { k["args"][1]["kind"] = "list"; },
               {"args[1]", "most"}},
        Spoilt{"list_beyond_the_bound",
               [](json &k) {
                 k["args"][1]["kind"] = "list";
                 k["args"][1]["most"] = 2;
               },
               {"args[1].dims", "at most 2"}}),
    [](const auto &info) { return info.param.name; });

TEST_F(Peers, tables_take_a_slot_for_each_rank) {
  Bound bound = kernel.bind(call.args, cuda(0));
  mlafix_launch_info info = bound.info();
  ASSERT_EQ(info.num_params, 7u);
  auto slots = [&](unsigned param, unsigned count) {
    auto *first = static_cast<const uint64_t *>(info.kernel_params[param]);
    return std::vector<uint64_t>(first, first + count);
  };
  EXPECT_EQ(slots(0, 1), std::vector<uint64_t>{bits(call.out())});
  EXPECT_EQ(slots(1, 3),
            (std::vector<uint64_t>{bits(data[0].data()), bits(data[1].data()),
                                   bits(data[2].data())}));
  EXPECT_EQ(slots(2, 3), (std::vector<uint64_t>{4, 4, 4})); // strides, size
  EXPECT_EQ(slots(6, 6),
            (std::vector<uint64_t>{2 | uint64_t(3) << 32, 7, bits(&failure),
                                   0x1000, 0x2000, 0x3000}));
  EXPECT_EQ(info.kernel_params[6], info.slots + 8);
  EXPECT_EQ(info.num_slots, 8u + 6);
}

/// Returns a unit of add_bias whose input is a list of one to three tensors, in
/// place of one tensor per rank. A list needs no group.
UnitWriter listUnit() {
  return collectiveUnit([](json &k) {
    k["args"][1]["kind"] = "list";
    k["args"][1]["most"] = 3;
    k["args"][1]["shape"][0] = -1;
    for (json &code : k["code"])
      for (json &variant : code["variants"])
        if (variant["params"].size() > 6)
          variant["params"].erase(6);
  });
}

TEST_F(Peers, a_list_needs_no_group) {
  Unit lists = load(listUnit());
  Kernel takesList = lists.kernel("add_bias");
  fake.paramSizes = {8, 24, 8, 8, 8, 4};
  peers.group = nullptr;
  refused({"\"in\"", "expected a mlafix_group"});
  expectError(MLAFIX_INVALID_ARGUMENT,
              {"\"in\"", "expected a list of tensors, got a tensor of each"},
              [&] { call.launch(takesList); });
  call.args[1] = Arg::list(peers);
  // The second launch has other addresses, and the third launch has only two
  // tensors. The memo must not take them for repetitions of the first launch.
  for (uint32_t count : {3u, 3u, 2u}) {
    std::swap(addresses[0], addresses[1]);
    peers.ranks = count;
    Bound bound = takesList.bind(call.args, cuda(0));
    mlafix_launch_info info = bound.info();
    ASSERT_EQ(info.num_params, 6u);
    auto *table = static_cast<const uint64_t *>(info.kernel_params[1]);
    for (uint32_t i = 0; i < 3; ++i)
      EXPECT_EQ(table[i], i < count ? bits(addresses[i]) : 0) << i;
    call.launch(takesList);
    EXPECT_EQ(fake.launches.back().params[1], bits(addresses[0]));
  }
  EXPECT_EQ(fake.launches.size(), 3u);
  peers.ranks = 4;
  expectError(MLAFIX_INVALID_ARGUMENT, {"\"in\"", "1 to 3 tensors, got 4"},
              [&] { call.launch(takesList); });
}

TEST_F(Peers, a_list_is_local_if_all_its_tensors_are) {
  UnitWriter writer = listUnit();
  for (json &variant : writer.kernel()["code"][1]["variants"])
    variant["params"].push_back({{"kind", "local"}});
  Unit lists = load(writer);
  fake.paramSizes = {8, 24, 8, 8, 8, 4, 4};
  // Addresses on separate pages, which are never accessed.
  for (int i = 0; i < 3; ++i) {
    uint64_t at = (uint64_t(0x7f00) << 32) + (uint64_t(i) << 23);
    addresses[i] = reinterpret_cast<void *>(at);
    fake.allocations[at] = {4096, i == 2, runtime::cuda::memoryTypeDevice, 0};
  }
  call.args[1] = Arg::list(peers);
  call.launch(lists.kernel("add_bias"));
  peers.ranks = 2;
  call.launch(lists.kernel("add_bias"));
  ASSERT_EQ(fake.launches.size(), 2u);
  EXPECT_EQ(fake.launches[0].params.at(6), 0u);
  EXPECT_EQ(fake.launches[1].params.at(6), 1u);
}

TEST_F(Peers, a_rank_without_rows_launches_one_block) {
  sizes[0] = 0;
  call.args[0] =
      Tensor::strided(call.out(), MLAFIX_F32, {0, 4}, {4, 1}, cuda(0));
  call.args[4] = int64_t(0);
  call.launch(kernel);
  ASSERT_EQ(fake.launches.size(), 1u);
  EXPECT_EQ(fake.launches[0].grid, 1u);
}

TEST_F(Peers, a_failure_is_an_error_of_the_next_launch) {
  call.launch(kernel);
  Bound bound = kernel.bind(call.args, cuda(0));
  EXPECT_EQ(mlafix_group_check(&group), MLAFIX_OK);
  failure = 2;
  refused({"all 3 ranks", "rank 1"}, MLAFIX_RANK_ERROR);
  expectError(MLAFIX_RANK_ERROR, {"rank 1"}, [&] { bound.launch(); });
  EXPECT_EQ(mlafix_group_check(&group), MLAFIX_RANK_ERROR);
  EXPECT_EQ(mlafix_group_check(nullptr), MLAFIX_INVALID_ARGUMENT);
  EXPECT_EQ(fake.launches.size(), 1u);
}

/// Tests which calls the memo recognises as repeated.
class KnownPeers : public Peers {
protected:
  bool isKnown() {
    const runtime::PreparedKernel *prepared =
        runtime::preparedKernel(*kernel.get(), cuda(0));
    detail::PackedArgs packed(kernel.get(), call.args.data(), call.args.size());
    runtime::Plan plan;
    return prepared && prepared->memo.recall(packed.data(), packed.size(),
                                             cuda(0), 0, plan);
  }
  /// Returns true if the call is known while `what` is `value`.
  template <typename T> bool isKnownWith(T &what, const T &value) {
    // The memo stops looking up calls after many unknown ones. This known call
    // makes the memo look up the next call.
    EXPECT_TRUE(isKnown());
    T was = what;
    what = value;
    bool known = isKnown();
    what = was;
    return known;
  }
};

TEST_F(KnownPeers, calls_on_other_memory_of_this_rank) {
  EXPECT_FALSE(isKnown());
  call.launch(kernel);
  EXPECT_TRUE(isKnown());
  std::vector<float> other(36);
  call.args[0] = call.tensor(other.data());
  EXPECT_TRUE(isKnown());
  // A known launch must pass the same parameters as a fully checked launch.
  Unit fresh = load(collectiveUnit());
  call.launch(fresh.kernel("add_bias"));
  call.launch(kernel);
  ASSERT_EQ(fake.launches.size(), 3u);
  EXPECT_EQ(fake.launches[2].params, fake.launches[1].params);
  EXPECT_EQ(fake.launches[2].params[0], bits(other.data()));
  EXPECT_EQ(fake.launches[2].params[1], bits(data[0].data()));
  EXPECT_EQ(fake.launches[2].params[6], 2 | uint64_t(3) << 32);
}

TEST_F(KnownPeers, lists_at_the_same_addresses) {
  Unit lists = load(listUnit());
  kernel = lists.kernel("add_bias");
  fake.paramSizes = {8, 24, 8, 8, 8, 4};
  peers.group = nullptr;
  call.args[1] = Arg::list(peers);
  std::vector<float> other(36);
  call.launch(kernel);
  EXPECT_TRUE(isKnownWith<const mlafix_group *>(peers.group, &group));
  EXPECT_FALSE(isKnownWith<void *>(addresses[2], other.data()));
  EXPECT_FALSE(isKnownWith(peers.ranks, uint32_t(2)));
  EXPECT_TRUE(isKnown());
  call.args[0] = call.tensor(data[1].data());
  EXPECT_FALSE(isKnown());
}

TEST_F(KnownPeers, no_calls_that_a_check_or_the_plan_would_tell_apart) {
  call.launch(kernel);
  std::vector<float> other(36);
  int64_t shorter[2] = {7, 4}, strides[2] = {4, 1}, apart[2] = {5, 1};
  mlafix_group another = group;
  void *others[3] = {workspaces[0], workspaces[1], workspaces[0]};
  EXPECT_TRUE(isKnownWith(addresses[1], addresses[1]));
  EXPECT_TRUE(isKnownWith<const int64_t *>(each.strides, strides));
  EXPECT_TRUE(isKnownWith<const mlafix_group *>(peers.group, &another));
  EXPECT_FALSE(isKnownWith<void *>(addresses[2], other.data()));
  EXPECT_FALSE(
      isKnownWith<void *>(workspaces[0], reinterpret_cast<void *>(0x4000)));
  EXPECT_FALSE(isKnownWith<const int64_t *>(each.sizes, shorter));
  EXPECT_FALSE(isKnownWith<const int64_t *>(each.strides, apart));
  EXPECT_FALSE(isKnownWith(each.dtype, int32_t(MLAFIX_I32)));
  EXPECT_FALSE(isKnownWith(each.device, cuda(1)));
  EXPECT_FALSE(isKnownWith(each.ndim, uint32_t(1)));
  EXPECT_FALSE(isKnownWith(peers.ranks, uint32_t(2)));
  EXPECT_FALSE(isKnownWith(peers.struct_size, uint32_t(8)));
  EXPECT_FALSE(isKnownWith<const mlafix_group *>(peers.group, nullptr));
  EXPECT_FALSE(isKnownWith(group.rank, uint32_t(1)));
  EXPECT_FALSE(isKnownWith(group.ranks, uint32_t(2)));
  EXPECT_FALSE(isKnownWith(group.timeout_ns, uint64_t(8)));
  EXPECT_FALSE(isKnownWith<uint64_t *>(group.failure, nullptr));
  EXPECT_FALSE(isKnownWith<void *const *>(group.workspaces, others));
  EXPECT_FALSE(isKnownWith(failure, uint64_t(1)));
  EXPECT_FALSE(isKnownWith(call.args[0], Arg(call.tensor(data[1].data()))))
      << "overlaps what another rank reads";
}

TEST_F(Peers, what_is_no_tensor_of_each_rank_is_refused) {
  each.ndim = 1;
  refused({"\"in\"", "2 dims of each rank's tensor, got 1"});
  each.ndim = 2;
  addresses[1] = nullptr;
  refused({"\"in\"", "a data pointer of rank 1, got null"});
  addresses[1] = reinterpret_cast<char *>(data[1].data()) + 2;
  refused({"\"in\"", "of rank 1 that is a multiple of 4"});
  addresses[1] = call.out() + 4;
  refused({"\"out\"", "apart from that of argument \"in\" of rank 1"});
  addresses[1] = data[1].data();
  peers.ranks = 2;
  refused({"\"in\"", "size 3 in dim 0"});
  peers.ranks = 73;
  refused({"\"in\"", "1 to 72 ranks, got 73"});
  peers.ranks = 3;
  peers.struct_size = 8;
  refused({"\"in\"", "a tensor of each rank"});
  EXPECT_TRUE(fake.launches.empty());
}

TEST_F(Peers, groups_that_do_not_fit_are_refused) {
  peers.group = nullptr;
  refused({"\"in\"", "a mlafix_group with workspaces, got null"});
  peers.group = &group;
  group.rank = 3;
  refused({"\"in\"", "a group of 3 ranks, one per tensor, and a rank below "
                     "that, got 3 ranks and rank 3"});
  group.rank = 0;
  workspaces[2] = reinterpret_cast<void *>(0x3040);
  refused({"\"in\"",
           "the workspace of rank 2 at an address that is a multiple of 128"});
  EXPECT_TRUE(fake.launches.empty());
}

} // namespace
