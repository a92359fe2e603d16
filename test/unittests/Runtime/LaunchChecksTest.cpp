//===- LaunchChecksTest.cpp - Conditions on sizes and scalars -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "TestUnit.h"

#include <climits>
#include <functional>

using namespace mlafix;
using namespace mlafix::test;

namespace {

/// Returns a unit of add_bias with the given launch checks.
Unit unitWith(json checks) {
  UnitWriter writer = addBiasUnit();
  writer.kernel()["checks"] = std::move(checks);
  return load(writer);
}

TEST(LaunchChecks, a_launch_that_passes) {
  Unit unit = unitWith(json::array({leastRows(2)}));
  AddBiasCall call{8};
  call.launch(unit.kernel("add_bias"));
  EXPECT_TRUE(call.isDone());
}

// A pointer must not convert to an argument, since it would become a bool.
static_assert(!std::is_convertible<const char *, Arg>::value, "");
static_assert(!std::is_convertible<float *, Arg>::value, "");
static_assert(!std::is_convertible<std::nullptr_t, Arg>::value, "");
static_assert(std::is_convertible<bool, Arg>::value, "");

TEST(LaunchChecks, an_integer_that_no_i64_holds_is_an_error) {
  expectError(MLAFIX_INVALID_ARGUMENT,
              {"expected an integer that an i64 holds", "9223372036854775808"},
              [] { Arg argument(uint64_t(1) << 63); });
  AddBiasCall call{8};
  call.args[4] = size_t(8);
  call.launch(unitWith(json::array({leastRows(2)})).kernel("add_bias"));
  EXPECT_TRUE(call.isDone());
}

TEST(LaunchChecks, one_that_fails_launches_nothing) {
  Unit unit = unitWith(json::array({leastRows(2), leastRows(9)}));
  Kernel kernel = unit.kernel("add_bias");
  AddBiasCall call{8};
  std::vector<std::string> words = {"\"add_bias\"", "expected n >= 9",
                                    "got n = 8"};
  for (int i = 0; i < 3; ++i) // a repeated call must fail, too
    expectRefused(kernel, call, words);
}

TEST(LaunchChecks, an_omitted_tensor_has_size_0) {
  json check = leastRows(1);
  check["steps"][0]["arg"] = 2;
  Unit unit = unitWith(json::array({check}));
  AddBiasCall call{8};
  call.args[2] = Tensor::none();
  expectError(MLAFIX_INVALID_ARGUMENT, {"expected n >= 1", "got n = 0"},
              [&] { call.launch(unit.kernel("add_bias")); });
}

TEST(LaunchChecks, a_scalar) {
  json steps = {{{"op", "scalar"}, {"arg", 4}},
                {{"op", "constant"}, {"value", 5}},
                {{"op", "eq"}, {"of", {0, 1}}}};
  json check = {{"text", "limit is five"}, {"steps", steps}};
  Unit unit = unitWith(json::array({check}));
  AddBiasCall call{8};
  call.args[4] = int64_t(5);
  call.launch(unit.kernel("add_bias"));
  EXPECT_TRUE(call.isDone());
  call.args[4] = int64_t(6);
  expectError(MLAFIX_INVALID_ARGUMENT,
              {"expected limit is five", "got limit = 6"},
              [&] { call.launch(unit.kernel("add_bias")); });
}

struct Computed {
  const char *op;
  std::vector<int64_t> operands;
  int64_t value;
};

const Computed computed[] = {
    {"add", {INT64_MAX, 1}, INT64_MIN},
    {"sub", {3, 5}, -2},
    {"mul", {INT64_MAX, 2}, -2},
    {"div", {-7, 2}, -3},
    {"div", {-7, 0}, -7},
    {"div", {INT64_MIN, -1}, INT64_MIN},
    {"rem", {-7, 2}, -1},
    {"rem", {-7, 0}, 0},
    {"rem", {INT64_MIN, -1}, 0},
    {"udiv", {-2, 2}, INT64_MAX},
    {"udiv", {5, 0}, 5},
    {"urem", {-1, 2}, 1},
    {"urem", {-1, 0}, 0},
    {"and", {12, 10}, 8},
    {"or", {12, 10}, 14},
    {"xor", {12, 10}, 6},
    {"shl", {3, 62}, INT64_MIN + (int64_t(1) << 62)},
    {"shl", {3, 64}, 0},
    {"shr", {-8, 1}, -4},
    {"shr", {-8, 100}, -1},
    {"ushr", {-8, 1}, INT64_MAX - 3},
    {"ushr", {-8, 64}, 0},
    {"min", {-1, 1}, -1},
    {"max", {-1, 1}, 1},
    {"umin", {-1, 1}, 1},
    {"umax", {-1, 1}, -1},
    {"eq", {4, 4}, 1},
    {"eq", {4, 5}, 0},
    {"lt", {-1, 1}, 1},
    {"lt", {1, 1}, 0},
    {"ult", {-1, 1}, 0},
    {"select", {1, 5, 6}, 5},
    {"select", {0, 5, 6}, 6},
    {"wrap32", {int64_t(1) << 31}, INT32_MIN},
    {"wrap32", {(int64_t(5) << 32) + 7}, 7},
};

TEST(LaunchChecks, steps_compute_what_the_table_says) {
  for (const Computed &row : computed) {
    json steps = json::array(), of = json::array();
    for (int64_t operand : row.operands) {
      of.push_back(steps.size());
      steps.push_back({{"op", "constant"}, {"value", operand}});
    }
    steps.push_back({{"op", row.op}, {"of", of}});
    for (bool isRight : {true, false}) {
      json all = steps;
      all.push_back(
          {{"op", "constant"}, {"value", isRight ? row.value : row.value ^ 1}});
      all.push_back({{"op", "eq"}, {"of", {all.size() - 2, all.size() - 1}}});
      json check = {{"text", row.op}, {"steps", all}};
      Unit unit = unitWith(json::array({check}));
      AddBiasCall call{8};
      auto launch = [&] { call.launch(unit.kernel("add_bias")); };
      if (isRight)
        EXPECT_NO_THROW(launch()) << row.op << " of " << row.operands.front();
      else
        expectError(MLAFIX_INVALID_ARGUMENT, {row.op}, launch);
    }
  }
}

/// A change to a check, and the words of the error that it must cause.
struct Spoilt {
  std::function<void(json &check)> spoil;
  std::vector<std::string> words;
};

const std::vector<Spoilt> spoilt = {
    {[](json &k) { k.erase("text"); }, {"checks[0]", "\"text\""}},
    {[](json &k) { k["steps"] = json::array(); },
     {"checks[0].steps", "one step or more"}},
    {[](json &k) {
       json &steps = k["steps"];
       steps = json(257, steps[0]);
     },
     {"checks[0].steps", "at most 256 elements, got 257"}},
    {[](json &k) { k["steps"][0]["op"] = "cube"; },
     {"steps[0].op", "knows", "\"cube\""}},
    {[](json &k) { k["steps"][2]["of"][1] = 2; },
     {"steps[2].of[1]", "from 0 to 1, got 2"}},
    {[](json &k) { k["steps"][2]["of"] = json::array({0}); },
     {"steps[2].of", "2 steps"}},
    {[](json &k) { k["steps"][0]["arg"] = 5; },
     {"steps[0].arg", "from 0 to 4, got 5"}},
    {[](json &k) { k["steps"][0]["arg"] = 4; },
     {"steps[0].arg", "a tensor with dims"}},
    {[](json &k) { k["steps"][0]["dim"] = 2; },
     {"steps[0].dim", "from 0 to 1, got 2"}},
    {[](json &k) {
       k["steps"][0] = {{"op", "scalar"}, {"arg", 3}};
     },
     {"steps[0].arg", "an integer scalar"}}};

TEST(LaunchChecks, one_that_is_wrong_makes_no_unit) {
  for (const Spoilt &row : spoilt) {
    json check = leastRows(2);
    row.spoil(check);
    std::vector<std::string> words = row.words;
    words.push_back("checks[0]");
    expectError(MLAFIX_BAD_UNIT, words,
                [&] { unitWith(json::array({check})); });
  }
}

} // namespace
