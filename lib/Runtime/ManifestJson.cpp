//===- ManifestJson.cpp - The manifest's text to JSON values --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "ManifestValue.h"

using namespace mlafix::runtime;

namespace {

/// Scans JSON text without storing it, and stops at the first value or level
/// beyond a limit. A callback of json::parse() would be slower, since the JSON
/// library then rescans the whole array after each element.
class Limits : public nlohmann::json_sax<json> {
public:
  std::string wrong; ///< the reason why the text is refused, or ""

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(number_integer_t) override { return count(); }
  bool number_unsigned(number_unsigned_t) override { return count(); }
  bool number_float(number_float_t, const string_t &) override {
    return count();
  }
  bool string(string_t &) override { return count(); }
  bool binary(binary_t &) override { return count(); }
  bool key(string_t &) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string &,
                   const nlohmann::detail::exception &error) override {
    wrong = std::string("expected JSON, got ") + error.what();
    return false;
  }

private:
  bool count() {
    if (++values <= limits::jsonValues)
      return true;
    wrong = "expected at most " + std::to_string(limits::jsonValues) +
            " values, got more";
    return false;
  }
  bool open() {
    if (++depth > limits::jsonDepth) {
      wrong = "expected at most " + std::to_string(limits::jsonDepth) +
              " nested levels, got more";
      return false;
    }
    return count();
  }
  bool close() {
    --depth;
    return true;
  }

  size_t values = 0;
  int depth = 0;
};

} // namespace

json mlafix::runtime::parseJson(const char *text, size_t size) {
  Limits check;
  if (!json::sax_parse(text, text + size, &check))
    throw ManifestError{check.wrong};
  try {
    return json::parse(text, text + size);
  } catch (const json::exception &error) {
    throw ManifestError{std::string("expected JSON, got ") + error.what()};
  }
}
