//===- PlanTest.cpp - Chooses variants and grids --------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Environment.h"
#include "FakeCuda.h"
#include "TestUnit.h"

using namespace mlafix;
using namespace mlafix::test;

namespace {

class Plan : public testing::Test {
protected:
  FakeCuda fake;
  UnitWriter writer = addBiasUnit();
  AddBiasCall call{20, cuda(0)};

  json &variant(int index = 0) {
    return writer.kernel()["code"][1]["variants"][index];
  }
  mlafix_launch_info info() {
    bound = std::make_unique<Bound>(
        load(writer).kernel("add_bias").bind(call.args, cuda(0)));
    return bound->info();
  }
  std::unique_ptr<Bound> bound;
};

json ragged(json rows, int rowsPerBlock, int blocksPerSm) {
  return {{"kind", "ragged"},
          {"rows", std::move(rows)},
          {"inner", json::array({{{"value", 16}}})},
          {"rows_per_block", rowsPerBlock},
          {"threads", 64},
          {"blocks_per_sm", blocksPerSm}};
}

TEST_F(Plan, extents_multiply) {
  variant()["geometry"]["extents"] = {
      {{"arg", 0}, {"dim", 0}}, {{"value", 3}}, {{"arg", 4}}};
  call.args[4] = 5;
  EXPECT_EQ(info().rows, 20 * 3 * 5);
  EXPECT_EQ(info().grid_x, 38u);
}

TEST_F(Plan, an_extent_of_zero_is_an_empty_grid) {
  variant()["geometry"]["extents"] = {{{"arg", 0}, {"dim", 0}}, {{"arg", 4}}};
  call.args[4] = 0;
  EXPECT_EQ(info().rows, 0);
  bound->launch();
  EXPECT_TRUE(fake.launches.empty());
}

TEST_F(Plan, whole_blocks_get_no_block_more) {
  call = AddBiasCall(16, cuda(0));
  EXPECT_EQ(info().grid_x, 2u);
}

TEST_F(Plan, an_empty_extent_outweighs_a_huge_one) {
  variant()["geometry"]["extents"] = {
      {{"value", INT64_MAX}}, {{"value", 3}}, {{"value", 0}}};
  EXPECT_EQ(info().rows, 0);
}

TEST_F(Plan, a_ragged_grid_without_inner_rows_is_empty) {
  variant()["geometry"] = ragged({{"value", 7}}, 8, 4);
  variant()["geometry"]["inner"] = json::array({{{"value", 0}}});
  EXPECT_EQ(info().rows, 0);
}

TEST_F(Plan, rows_of_half_bytes_are_half_as_far_apart) {
  writer.kernel()["args"][1]["dtype"] = "f4e2m1";
  call.args[1] = Tensor::contiguous(call.in(), MLAFIX_F4E2M1, {20, 4}, cuda(0));
  EXPECT_EQ(info().slots[3], 2u) << "the first stride of argument 1, in bytes";
}

TEST_F(Plan, no_extents_are_one_row) {
  variant()["geometry"]["extents"] = json::array();
  EXPECT_EQ(info().rows, 1);
  EXPECT_EQ(info().grid_x, 1u);
}

TEST_F(Plan, a_negative_extent_names_its_argument) {
  writer.kernel()["args"][4].erase("at_most");
  variant()["geometry"]["extents"] = json::array({{{"arg", 4}}});
  call.args[4] = -3;
  expectError(MLAFIX_INVALID_ARGUMENT, {"\"limit\"", "at least 0", "got -3"},
              [&] { info(); });
  Kernel kernel = load(writer).kernel("add_bias");
  expectError(MLAFIX_INVALID_ARGUMENT, {"\"limit\""},
              [&] { kernel.validate(call.args, cuda(0)); });
}

TEST_F(Plan, a_grid_too_large_is_an_error) {
  writer.kernel()["args"][4].erase("at_most");
  variant()["guards"] = json::array();
  variant()["geometry"]["extents"] = json::array({{{"arg", 4}}});
  call.args[4] = int64_t(8) << 31;
  expectError(MLAFIX_INVALID_ARGUMENT, {"2147483647 blocks"}, [&] { info(); });
  variant()["geometry"]["extents"] = {{{"arg", 4}}, {{"value", INT64_MAX}}};
  expectError(MLAFIX_INVALID_ARGUMENT, {"2^63"}, [&] { info(); });
}

TEST_F(Plan, the_blocks_of_a_cluster_share_a_row) {
  writer.kernel()["args"][4].erase("at_most");
  variant()["guards"] = json::array();
  json &geometry = variant()["geometry"];
  geometry["extents"] = json::array({{{"arg", 4}}});
  geometry["rows_per_block"] = 1;
  geometry["threads"] = 512;
  geometry["cluster"] = 8;
  call.args[4] = 20;
  EXPECT_EQ(info().grid_x, 160u);
  EXPECT_EQ(info().block_x, 512u);
  call.args[4] = 0;
  EXPECT_EQ(info().rows, 0);
  call.args[4] = int64_t(1) << 28;
  expectError(MLAFIX_INVALID_ARGUMENT, {"2147483647 blocks", "2147483648"},
              [&] { info(); });
  call.args[4] = INT64_MAX;
  expectError(MLAFIX_INVALID_ARGUMENT, {"2147483647 blocks"}, [&] { info(); });
}

TEST_F(Plan, blocks_have_parts_of_a_row) {
  writer.kernel()["args"][4].erase("at_most");
  variant()["guards"] = json::array();
  json &geometry = variant()["geometry"];
  geometry["extents"] = json::array({{{"arg", 4}}});
  geometry["rows_per_block"] = 1;
  geometry["threads"] = 256;
  geometry["parts"] = {{"value", 63}};
  call.args[4] = 20;
  EXPECT_EQ(info().grid_x, 20u * 63u);
  EXPECT_EQ(info().rows, 20);
  EXPECT_EQ(info().block_x, 256u);
  // A row has ceil(size / per) parts, and at least one. The size is that of dim
  // 0 of argument 0, which is 20.
  for (auto [per, parts] : {std::pair(3, 7u), {20, 1u}, {21, 1u}, {19, 2u}}) {
    geometry["parts"] = {{"arg", 0}, {"dim", 0}, {"per", per}};
    EXPECT_EQ(info().grid_x, 20u * parts) << per;
  }
  geometry["parts"] = {{"value", 63}};
  call.args[4] = int64_t(1) << 28;
  expectError(MLAFIX_INVALID_ARGUMENT, {"2147483647 blocks"}, [&] { info(); });
}

TEST_F(Plan, a_ragged_grid_fills_the_device_and_no_more) {
  variant()["geometry"] = ragged({{"arg", 0}, {"dim", 0}}, 8, 4);
  EXPECT_EQ(info().grid_x, 40u) << "few rows: ceil(20 x 16 / 8)";
  EXPECT_EQ(info().rows, 20);
  EXPECT_EQ(info().block_x, 64u);
  variant()["geometry"] = ragged({{"value", 1 << 20}}, 8, 4);
  EXPECT_EQ(info().grid_x, 4u * 132u);
}

TEST_F(Plan, a_ragged_grid_without_rows_is_empty) {
  variant()["geometry"] = ragged({{"value", 0}}, 8, 4);
  EXPECT_EQ(info().rows, 0);
}

TEST_F(Plan, max_rows_counts_all_extents) {
  json guard = {{"kind", "max_rows"}, {"value", 20}};
  variant()["guards"] = json::array({guard});
  EXPECT_EQ(info().variant, 0u);
  variant()["guards"][0]["value"] = 19;
  EXPECT_EQ(info().variant, 1u);
  variant()["geometry"] = ragged({{"arg", 0}, {"dim", 0}}, 8, 4);
  variant()["guards"][0]["value"] = 20 * 16 - 1; // 20 rows, inner extent 16
  EXPECT_EQ(info().variant, 1u);
  variant()["guards"][0]["value"] = 20 * 16;
  EXPECT_EQ(info().variant, 0u);
}

TEST_F(Plan, a_distinct_guard_compares_where_two_tensors_begin) {
  // The first variant requires that arguments 0 and 1 begin at different
  // addresses.
  variant()["guards"] =
      json::array({{{"kind", "distinct"}, {"args", json::array({0, 1})}}});
  EXPECT_EQ(info().variant, 0u);
  call.args[1] = call.args[0];
  EXPECT_EQ(info().variant, 1u);
}

TEST_F(Plan, blocks_are_halved_while_there_are_few) {
  variant()["guards"] = json::array();
  json &geometry = variant()["geometry"];
  geometry["rows_per_block"] = 64;
  geometry["threads"] = 512;
  geometry["extents"] = {{{"arg", 0}, {"dim", 0}}, {{"arg", 4}}};
  writer.kernel()["args"][4].erase("at_most");
  auto blocks = [&](int64_t rows) {
    call.args[4] = rows / 20;
    return info();
  };
  EXPECT_EQ(blocks(200).block_x, 512u) << "as the unit says";
  geometry["least_threads"] = 128;
  EXPECT_EQ(blocks(200).block_x, 128u);
  EXPECT_EQ(info().grid_x, 13u) << "ceil(200 / 16)";
  // Enough rows for 32 blocks of 64 rows on each of 132 multiprocessors.
  int64_t enough = 32 * 132 * 64;
  EXPECT_EQ(blocks(enough / 20 * 20 + 20).block_x, 512u);
  EXPECT_EQ(blocks(enough / 2 / 20 * 20 + 20).block_x, 256u);
  EXPECT_EQ(blocks(enough / 4 / 20 * 20 + 20).block_x, 128u);
  EXPECT_EQ(info().grid_x, (enough / 4 / 20 * 20 + 20 + 15) / 16);
}

/// Returns a geometry with lane groups. Argument 4 is the number of rows. Each
/// row has `lanes` lanes and merges 20 states, which is the number of rows of
/// argument 0. The manifest calls the states "pieces".
json groups(int64_t lanes) {
  return {{"kind", "groups"},
          {"extents", {{{"arg", 4}}}},
          {"lanes", lanes},
          {"threads", 512},
          {"groups",
           {{"most", 16},
            {"chunk", 4},
            {"least_threads", 32},
            {"threads_per_sm", 8192},
            {"pieces", {{"arg", 0}, {"dim", 0}}}}}};
}

/// A call of a kernel whose variants all have lane groups.
class GroupPlan : public Plan {
protected:
  GroupPlan() {
    writer.kernel()["args"][4].erase("at_most");
    fake.paramSizes = {4};
    useGroups(32);
  }
  void useGroups(int64_t lanes) {
    for (int index : {0, 1}) {
      variant(index)["guards"] = json::array();
      variant(index)["geometry"] = groups(lanes);
      variant(index)["params"] = json::array({{{"kind", "group_threads"}}});
    }
  }
};

TEST_F(GroupPlan, pieces_are_shared_while_the_device_has_room) {
  auto plan = [&](int64_t rows) {
    call.args[4] = rows;
    return info();
  };
  // A row's 20 states are five chunks of four. The number of groups is a power
  // of two, so there are eight groups, of one warp each.
  EXPECT_EQ(plan(3).block_x, 256u);
  EXPECT_EQ(info().grid_x, 3u);
  EXPECT_EQ(info().slots[0], 32u);
  // The number of warps that 132 multiprocessors of 8192 threads hold.
  constexpr int64_t room = 132 * 8192 / 32;
  auto groups = [&](int64_t rows) {
    return plan(rows).block_x / info().slots[0];
  };
  EXPECT_EQ(groups(room / 8), 8u);
  EXPECT_EQ(groups(room / 8 + 1), 4u);
  EXPECT_EQ(groups(room / 2), 2u);
  EXPECT_EQ(groups(room), 1u);
  EXPECT_EQ(info().grid_x, room / 16) << "512 threads, 16 rows";
  EXPECT_EQ(plan(0).rows, 0);
}

TEST_F(GroupPlan, few_rows_have_groups_of_half_a_warp) {
  json &geometry = variant()["geometry"];
  geometry["groups"]["least_threads"] = 16;
  // At 33 blocks, a quarter of the 132 multiprocessors, a group is a warp. With
  // fewer blocks it is half a warp.
  call.args[4] = int64_t(33);
  EXPECT_EQ(info().slots[0], 32u);
  EXPECT_EQ(info().block_x, 256u) << "eight groups";
  EXPECT_EQ(info().grid_x, 33u);
  call.args[4] = int64_t(32);
  EXPECT_EQ(info().slots[0], 16u);
  EXPECT_EQ(info().block_x, 128u);
  EXPECT_EQ(info().grid_x, 64u);
}

TEST_F(GroupPlan, blocks_are_large_if_each_multiprocessor_has_one) {
  auto plan = [&](int64_t rows, int64_t threadsPerSm) {
    useGroups(32);
    json &geometry = variant()["geometry"];
    geometry["groups"]["pieces"] = {{"value", 1}};
    geometry["groups"]["threads_per_sm"] = threadsPerSm;
    call.args[4] = rows;
    return info().block_x;
  };
  // The block size doubles once there are enough rows for a block of the larger
  // size on each of 132 multiprocessors. Blocks of 256 threads have 8 rows,
  // those of 512 threads 16.
  EXPECT_EQ(plan(132 * 8 - 1, 1024), 128u);
  EXPECT_EQ(plan(132 * 8, 1024), 256u);
  EXPECT_EQ(info().grid_x, 132u);
  EXPECT_EQ(plan(132 * 16 - 1, 1024), 256u);
  EXPECT_EQ(plan(132 * 16, 1024), 512u);
  EXPECT_EQ(plan(132 * 32, 1024), 512u) << "what the unit has at most";
  EXPECT_EQ(plan(132 * 32 - 32, 1023), 256u) << "two blocks a multiprocessor";
  EXPECT_EQ(plan(132 * 32 + 1, 1024), 128u) << "not all threads at once";
}

TEST_F(GroupPlan, groups_are_no_more_than_chunks) {
  auto plan = [&](int64_t pieces) {
    useGroups(40);
    variant()["geometry"]["groups"]["pieces"] = {{"value", pieces}};
    call.args[4] = 1;
    return info();
  };
  EXPECT_EQ(plan(0).block_x, 128u);
  EXPECT_EQ(plan(4).slots[0], 128u) << "one group";
  EXPECT_EQ(plan(5).slots[0], 64u) << "two groups";
  EXPECT_EQ(plan(1 << 20).block_x, 512u) << "sixteen groups";
  EXPECT_EQ(info().grid_x, 2u) << "of 40 lanes, 32 and 8";
}

TEST_F(GroupPlan, a_negative_number_of_pieces_is_none) {
  variant()["geometry"]["extents"] = json::array({{{"value", 1}}});
  variant()["geometry"]["groups"]["pieces"] = {{"arg", 4}};
  call.args[4] = -5;
  EXPECT_EQ(info().slots[0], 128u);
}

TEST_F(Plan, group_threads_are_a_parameter_of_lane_groups_alone) {
  variant()["params"] = json::array({{{"kind", "group_threads"}}});
  expectError(MLAFIX_BAD_UNIT, {"\"group_threads\" only beside"},
              [&] { info(); });
}

TEST_F(Plan, a_same_strides_guard_looks_at_dims_of_several_elements) {
  variant()["guards"] =
      json::array({{{"kind", "same_strides"}, {"args", json::array({0, 1})}}});
  EXPECT_EQ(info().variant, 0u);
  std::vector<float> wide(8 * 20);
  call.args[1] =
      Tensor::strided(wide.data(), MLAFIX_F32, {20, 4}, {8, 1}, cuda(0));
  EXPECT_EQ(info().variant, 1u);
}

TEST_F(Plan, a_beyond_cache_guard_adds_up_what_its_tensors_hold) {
  variant()["guards"] =
      json::array({{{"kind", "beyond_cache"}, {"args", json::array({0, 2})}}});
  call.args[2] =
      Tensor::strided(call.scaleData.data(), MLAFIX_F32, {20}, {1}, cuda(0));
  constexpr int64_t bytes = 20 * 4 * 4 + 20 * 4;
  auto chosen = [&](int64_t cache) {
    setenv("MLAFIX_CPU_CACHE_BYTES", std::to_string(cache).c_str(), 1);
    runtime::reloadEnvironmentForTesting();
    uint32_t index = info().variant;
    unsetenv("MLAFIX_CPU_CACHE_BYTES");
    runtime::reloadEnvironmentForTesting();
    return index;
  };
  EXPECT_EQ(chosen(2 * bytes - 1), 0u);
  EXPECT_EQ(chosen(2 * bytes), 1u) << "half of the cache holds them";
  EXPECT_EQ(info().variant, 1u) << "some cache is larger than 400 bytes";
}

TEST_F(Plan, a_stride_guard_looks_at_dims_of_more_than_one_element) {
  json guard = {{"kind", "stride"}, {"arg", 1}, {"dim", 0}, {"value", 4}};
  variant()["guards"] = json::array({guard});
  EXPECT_EQ(info().variant, 0u);
  variant()["guards"][0]["value"] = 5;
  EXPECT_EQ(info().variant, 1u);
  call = AddBiasCall(1, cuda(0));
  EXPECT_EQ(info().variant, 0u);
}

TEST_F(Plan, a_packed_guard_compares_a_stride_with_the_next_size) {
  json guard = {{"kind", "packed"}, {"arg", 1}, {"dim", 0}, {"value", 1}};
  variant()["guards"] = json::array({guard});
  EXPECT_EQ(info().variant, 0u);
  std::vector<float> wide(8 * 20);
  call.args[1] =
      Tensor::strided(wide.data(), MLAFIX_F32, {20, 4}, {8, 1}, cuda(0));
  EXPECT_EQ(info().variant, 1u);
  variant()["guards"][0]["value"] = 2;
  EXPECT_EQ(info().variant, 0u);
  call = AddBiasCall(1, cuda(0));
  EXPECT_EQ(info().variant, 0u) << "one row has no stride";
}

TEST_F(Plan, a_multiple_guard_looks_at_a_size) {
  json guard = {{"kind", "multiple"}, {"arg", 1}, {"dim", 1}, {"value", 4}};
  variant()["guards"] = json::array({guard});
  EXPECT_EQ(info().variant, 0u);
  variant()["guards"][0]["value"] = 8;
  EXPECT_EQ(info().variant, 1u);
}

TEST_F(Plan, an_at_most_guard_looks_at_a_size) {
  json guard = {{"kind", "at_most"}, {"arg", 1}, {"dim", 0}, {"value", 20}};
  variant()["guards"] = json::array({guard});
  EXPECT_EQ(info().variant, 0u);
  variant()["guards"][0]["value"] = 19;
  EXPECT_EQ(info().variant, 1u);
  variant()["guards"][0]["arg"] = 2;
  EXPECT_EQ(info().variant, 0u) << "what is omitted has no size";
}

TEST_F(Plan, a_reciprocal_divides_every_number_of_a_row) {
  variant()["params"] =
      json::array({{{"kind", "reciprocal"}, {"arg", 1}, {"dim", 0}}});
  constexpr uint64_t most = INT32_MAX;
  // Nothing reads memory at these addresses.
  auto at = [](uint64_t address) { return reinterpret_cast<float *>(address); };
  for (uint64_t size :
       {uint64_t(1), uint64_t(2), uint64_t(3), uint64_t(7), uint64_t(12),
        uint64_t(127), uint64_t(128), uint64_t(641), uint64_t(6700417),
        (most + 1) / 2, (most + 1) / 2 + 1, most - 1, most}) {
    for (uint64_t arg : {uint64_t(0), uint64_t(1)})
      call.args[arg] =
          Tensor::strided(at((arg + 1) << 40), MLAFIX_F32,
                          {static_cast<int64_t>(size), 4}, {4, 1}, cuda(0));
    call.args[4] = 1;
    uint64_t reciprocal = info().slots[0];
    for (uint64_t x :
         {uint64_t(0), uint64_t(1), size - 1, size, size + 1,
          most / size * size - 1, most / size * size, most - 1, most})
      if (x <= most) {
        EXPECT_EQ(2 * x * (reciprocal & UINT32_MAX) >> 32 >> (reciprocal >> 32),
                  x / size)
            << x << " / " << size;
      }
  }
}

TEST_F(Plan, guards_of_an_omitted_argument_hold) {
  variant()["guards"] = {
      {{"kind", "align"}, {"args", json::array({2})}, {"bytes", 16}},
      {{"kind", "stride"}, {"arg", 2}, {"dim", 0}, {"value", 7}}};
  EXPECT_EQ(info().variant, 0u);
}

TEST_F(Plan, a_refused_variant_says_what_its_guard_expected_and_got) {
  auto refused = [&](json guard) {
    variant()["guards"] = json::array({std::move(guard)});
    EXPECT_EQ(info().variant, 1u);
    EXPECT_EQ(info().num_variants, 2u);
    EXPECT_STREQ(bound->variant(1).refused, "");
    EXPECT_EQ(bound->variant(1).is_chosen, 1);
    mlafix_variant_info first = bound->variant(0);
    EXPECT_EQ(first.is_chosen, 0);
    return std::string(first.refused);
  };
  json both = json::array({0, 1});
  EXPECT_EQ(refused({{"kind", "max_rows"}, {"value", 19}}),
            "expected a grid of at most 19 rows, got 20");
  EXPECT_EQ(refused({{"kind", "stride"}, {"arg", 1}, {"dim", 0}, {"value", 5}}),
            "expected stride 5 in dim 0 of \"in\", got 4");
  EXPECT_EQ(
      refused({{"kind", "beyond_cache"}, {"args", both}})
          .rfind("expected more bytes in \"out\", \"in\" than half of the "
                 "last cache holds, got 640 bytes, and a cache of ",
                 0),
      0u);
  std::vector<float> wide(7 * 20 + 1);
  call.args[1] =
      Tensor::strided(wide.data() + 1, MLAFIX_F32, {20, 4}, {7, 1}, cuda(0));
  EXPECT_EQ(refused({{"kind", "same_strides"}, {"args", both}}),
            "expected identical strides of \"out\", \"in\", got [4, 1] of "
            "\"out\", [7, 1] of \"in\"");
  EXPECT_EQ(
      refused({{"kind", "align"}, {"args", json::array({1})}, {"bytes", 4096}}),
      "expected rows of \"in\" at multiples of 4096 bytes, got \"in\" at "
      "multiples of 4");
  EXPECT_EQ(
      refused({{"kind", "at_most"}, {"arg", 1}, {"dim", 0}, {"value", 19}}),
      "expected a size of dim 0 of \"in\" of at most 19, got 20");
  call.args[1] = call.args[0];
  EXPECT_EQ(
      refused({{"kind", "distinct"}, {"args", both}}),
      "expected different addresses for \"out\", \"in\", got one address");
  expectError(MLAFIX_INVALID_ARGUMENT,
              {"less than 2, the number of code versions", "got 2"},
              [&] { bound->variant(2); });
}

TEST_F(Plan, a_plan_counts_each_element_once) {
  mlafix_launch_info out = info();
  EXPECT_EQ(out.bytes_read, 20u * 4 * 4) << "what is omitted has none";
  EXPECT_EQ(out.bytes_written, 20u * 4 * 4);
  // The fake device's memory clock is 2619 MHz. Each cycle has two transfers of
  // 5120 bits.
  EXPECT_EQ(out.bandwidth, int64_t(2) * 2619000000 * 5120 / 8);
}

TEST_F(Plan, no_variant_whose_guards_hold_is_an_error) {
  json guard = {{"kind", "max_rows"}, {"value", 0}};
  variant(0)["guards"] = json::array({guard});
  variant(1)["guards"] = json::array({guard});
  expectError(
      MLAFIX_INVALID_ARGUMENT,
      {"kernel \"add_bias\": expected a call that satisfies the guards of one "
       "of the 2 code versions for sm_90",
       "the last one requires a grid of at most 0 rows"},
      [&] { info(); });
}

TEST_F(Plan, the_message_says_what_a_guard_of_each_kind_asks_for) {
  // The call is in place, and the addresses of its rows are not multiples of 8
  // bytes.
  writer.kernel()["aliases"] = json::array({json::array({0, 1})});
  std::vector<float> data(5 * 20 + 1);
  call.args[0] = call.args[1] =
      Tensor::strided(data.data() + 1, MLAFIX_F32, {20, 4}, {5, 1}, cuda(0));
  auto expectAsked = [&](json guard, const char *asked) {
    variant(0)["guards"] = variant(1)["guards"] = json::array({guard});
    expectError(MLAFIX_INVALID_ARGUMENT, {asked}, [&] { info(); });
  };
  json both = json::array({0, 1});
  expectAsked({{"kind", "align"}, {"args", both}, {"bytes", 8}},
              "requires rows of \"out\", \"in\" at multiples of 8 bytes");
  expectAsked({{"kind", "distinct"}, {"args", both}},
              "requires different addresses for \"out\", \"in\"");
  expectAsked({{"kind", "beyond_cache"}, {"args", both}},
              "requires more bytes in \"out\", \"in\" than half of the last "
              "cache holds");
  expectAsked({{"kind", "max_rows"}, {"value", 3}},
              "requires a grid of at most 3 rows");
  expectAsked({{"kind", "stride"}, {"arg", 1}, {"dim", 0}, {"value", 7}},
              "requires stride 7 in dim 0 of \"in\"");
  expectAsked({{"kind", "multiple"}, {"arg", 1}, {"dim", 1}, {"value", 8}},
              "requires a size of dim 1 of \"in\" that is a multiple of 8");
  expectAsked({{"kind", "at_most"}, {"arg", 1}, {"dim", 0}, {"value", 19}},
              "requires a size of dim 0 of \"in\" of at most 19");
  std::vector<float> other(4 * 20);
  call.args[0] =
      Tensor::strided(other.data(), MLAFIX_F32, {20, 4}, {4, 1}, cuda(0));
  expectAsked({{"kind", "same_strides"}, {"args", both}},
              "requires identical strides of \"out\", \"in\"");
}

TEST_F(Plan, parameters_of_an_omitted_argument_are_zero) {
  variant()["params"] = {{{"kind", "pointer"}, {"arg", 2}},
                         {{"kind", "size"}, {"arg", 2}, {"dim", 0}},
                         {{"kind", "stride"}, {"arg", 2}, {"dim", 0}}};
  variant(1)["params"] = variant()["params"];
  fake.paramSizes = {8, 8, 8};
  mlafix_launch_info out = info();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(out.slots[i], 0u);
  call.args[2] =
      Tensor::strided(call.scaleData.data(), MLAFIX_F32, {20}, {1}, cuda(0));
  out = info();
  EXPECT_EQ(out.slots[1], 20u);
}

} // namespace
