//===- ManifestTextTest.cpp - Parses manifests as JSON --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "TestUnit.h"
#include "UnitModel.h"

#include <unistd.h>

using namespace mlafix;
using namespace mlafix::test;

namespace {

TEST(ManifestText, must_be_json) {
  for (const char *text : {"", "{", "[1, 2", "{\"kernels\": [}", "\xff\xfe",
                           "{\"kernels\": [], \"producer\": \"\xc3\"}"}) {
    std::vector<uint8_t> bytes = wrapUnit(text, "");
    expectError(MLAFIX_BAD_UNIT, {"JSON"},
                [&] { Unit::load(bytes.data(), bytes.size()); });
  }
  for (const char *text : {"[]", "null", "{}", "{\"kernels\": 3}"}) {
    std::vector<uint8_t> bytes = wrapUnit(text, "");
    expectError(MLAFIX_BAD_UNIT, {"expected"},
                [&] { Unit::load(bytes.data(), bytes.size()); });
  }
}

TEST(ManifestText, deep_nesting_is_refused) {
  std::string deep(1 << 20, '[');
  std::vector<uint8_t> bytes = wrapUnit(deep, "");
  expectError(MLAFIX_BAD_UNIT, {"nested"},
              [&] { Unit::load(bytes.data(), bytes.size()); });
}

/// Returns an array of `count` empty objects.
json manyValues(size_t count) {
  return json(json::array_t(count, json::object()));
}

TEST(ManifestText, many_values_take_time_in_proportion) {
  alarm(100); // code of quadratic time would take hours
  for (json wide : {manyValues(600000), json({{"a", manyValues(600000)}}),
                    json({manyValues(300000), manyValues(300000)})}) {
    UnitWriter writer = addBiasUnit();
    writer.manifest["notes"] = wide;
    EXPECT_NO_THROW(load(writer));
  }
  alarm(0);
}

TEST(ManifestText, too_many_values_are_refused) {
  UnitWriter writer = addBiasUnit();
  writer.manifest["notes"] = manyValues(runtime::limits::jsonValues);
  expectBadUnit(writer, {"expected at most 2097152 values, got more"});
}

TEST(ManifestText, what_a_message_quotes_ends_with_a_whole_character) {
  for (int shift = 0; shift < 4; ++shift) {
    UnitWriter writer = addBiasUnit();
    std::string text(shift, 'x');
    for (int i = 0; i < 100; ++i)
      text += "€";
    writer.kernel()["args"][0]["access"] = text;
    std::vector<uint8_t> bytes = writer.finish();
    Error error = errorOf([&] { Unit::load(bytes.data(), bytes.size()); });
    EXPECT_EQ(error.status(), MLAFIX_BAD_UNIT);
    EXPECT_NO_THROW(json(error.what()).dump()) << "no UTF-8";
  }
}

TEST(ManifestText, too_many_kernels_are_refused) {
  UnitWriter writer;
  writer.manifest = {{"kernels", std::vector<json>(4097, json::object())}};
  expectBadUnit(writer, {"kernels", "at most 4096"});
}

TEST(ManifestText, the_same_kernel_twice_is_refused) {
  UnitWriter writer = cpuOnlyUnit();
  writer.manifest["kernels"].push_back(writer.kernel());
  expectBadUnit(writer, {"kernels[1].name", "other bindings"});
}

TEST(ManifestText, unknown_keys_are_ignored) {
  UnitWriter writer = cpuOnlyUnit();
  writer.kernel()["colour"] = "blue";
  EXPECT_NO_THROW(load(writer));
}

} // namespace
