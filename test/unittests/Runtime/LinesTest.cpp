//===- LinesTest.cpp - Cache lines that a grid prefetches -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"
#include "TestUnit.h"

using namespace mlafix;
using namespace mlafix::test;

namespace {

TEST(Lines, lines_are_those_of_a_small_contiguous_tensor) {
  std::vector<float> data(1 << 17);
  FakeCuda fake;
  fake.paramSizes = {8};
  UnitWriter writer = addBiasUnit();
  for (json &version : writer.kernel()["code"][1]["variants"])
    version["params"] = json::array({{{"kind", "lines"}, {"arg", 1}}});
  AddBiasCall call{20, cuda(0)};
  auto lines = [&](std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    call.args[0] = Tensor::strided(data.data() + (1 << 16), MLAFIX_F32, sizes,
                                   {4, 1}, cuda(0));
    call.args[1] =
        Tensor::strided(data.data(), MLAFIX_F32, sizes, strides, cuda(0));
    call.args[4] = sizes[0];
    Bound bound = load(writer).kernel("add_bias").bind(call.args, cuda(0));
    return bound.info().slots[0];
  };
  // Rows have 4 floats (16 bytes); the device has 132 multiprocessors.
  EXPECT_EQ(lines({64, 4}, {4, 1}), 8u);
  EXPECT_EQ(lines({65, 4}, {4, 1}), 9u) << "a part of a line";
  EXPECT_EQ(lines({56, 4}, {4, 1}), 0u) << "fewer than 8";
  EXPECT_EQ(lines({33, 4}, {8, 1}), 9u) << "with gaps";
  EXPECT_EQ(lines({64, 4}, {0, 1}), 0u) << "all rows are one";
  // A block processes 8 rows, so 2112 rows are two blocks per multiprocessor.
  // Larger grids prefetch no lines of floats.
  EXPECT_EQ(lines({2112, 4}, {4, 1}), 264u);
  EXPECT_EQ(lines({2113, 4}, {4, 1}), 0u);
  EXPECT_EQ(lines({2, 4}, {32764, 1}), 1024u) << "128 KiB";
  EXPECT_EQ(lines({2, 4}, {32765, 1}), 0u);
  EXPECT_EQ(lines({0, 4}, {4, 1}), 0u);
}

TEST(Lines, integers_have_lines_in_any_grid_from_two_on) {
  std::vector<float> rows(1 << 17);
  std::vector<int32_t> data(1 << 17);
  FakeCuda fake;
  fake.paramSizes = {8};
  UnitWriter writer = addBiasUnit();
  writer.kernel()["args"][1]["dtype"] = "i32";
  for (json &version : writer.kernel()["code"][1]["variants"])
    version["params"] = json::array({{{"kind", "lines"}, {"arg", 1}}});
  AddBiasCall call{20, cuda(0)};
  auto lines = [&](int64_t n) {
    call.args[0] =
        Tensor::strided(rows.data(), MLAFIX_F32, {n, 4}, {4, 1}, cuda(0));
    call.args[1] =
        Tensor::strided(data.data(), MLAFIX_I32, {n, 4}, {4, 1}, cuda(0));
    call.args[4] = n;
    Bound bound = load(writer).kernel("add_bias").bind(call.args, cuda(0));
    return bound.info().slots[0];
  };
  EXPECT_EQ(lines(8), 0u) << "one line";
  EXPECT_EQ(lines(9), 2u);
  EXPECT_EQ(lines(2113), 265u) << "more than two blocks a multiprocessor";
}

} // namespace
