//===- ManifestValue.h - JSON values that know where they are ---*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Included by Manifest.cpp and ManifestJson.cpp only.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_MANIFESTVALUE_H
#define MLAFIX_RUNTIME_MANIFESTVALUE_H

#include "Status.h"
#include "UnitModel.h"

#include <initializer_list>
#include <nlohmann/json.hpp>

namespace mlafix::runtime {

using nlohmann::json;

struct ManifestError {
  std::string message;
};

/// Parses JSON text in linear time. Throws a ManifestError if the text is not
/// JSON, is nested too deeply, or has too many values.
json parseJson(const char *text, size_t size);

/// A JSON value and its path in the manifest, such as
/// `kernels[0].args[2].dtype`.
class Value {
public:
  Value(const json &value, std::string path)
      : value(value), path(std::move(path)) {}

  [[noreturn]] void error(const std::string &expected) const {
    throw ManifestError{path + ": expected " + expected + ", got " +
                        describe()};
  }

  bool has(const char *key) const {
    requireObject();
    return value.contains(key);
  }

  Value at(const char *key) const {
    requireObject();
    auto found = value.find(key);
    if (found == value.end())
      throw ManifestError{path + ": expected a key \"" + key + "\", got none"};
    return Value(*found, path.empty() ? key : path + "." + key);
  }

  /// Calls `visit(element)` for each element of the array. The array may have
  /// at most `most` elements.
  template <typename Visit> void each(size_t most, Visit visit) const {
    if (!value.is_array())
      error("an array");
    if (value.size() > most)
      throw ManifestError{path + ": expected at most " + std::to_string(most) +
                          " elements, got " + std::to_string(value.size())};
    for (size_t i = 0; i < value.size(); ++i)
      visit(Value(value[i], path + "[" + std::to_string(i) + "]"));
  }

  std::string string() const {
    if (!value.is_string())
      error("a string");
    const std::string &text = value.get_ref<const std::string &>();
    if (!limits::isText(text))
      error("a string without control characters of at most " +
            std::to_string(limits::nameBytes) + " bytes");
    return text;
  }

  std::string name() const {
    std::string text = string();
    if (text.empty())
      error("a name");
    return text;
  }

  /// Returns what `choices` has for the string.
  template <typename T>
  T choose(std::initializer_list<std::pair<const char *, T>> choices,
           const char *expected) const {
    std::string text = string();
    for (const auto &[name, choice] : choices)
      if (text == name)
        return choice;
    error(expected);
  }

  int64_t integer(int64_t least, int64_t most) const {
    bool fits = value.is_number_integer() &&
                !(value.is_number_unsigned() &&
                  value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
    if (!fits || value.get<int64_t>() < least || value.get<int64_t>() > most)
      error("an integer from " + std::to_string(least) + " to " +
            std::to_string(most));
    return value.get<int64_t>();
  }

  bool boolean() const {
    if (!value.is_boolean())
      error("true or false");
    return value.get<bool>();
  }

  void requireObject() const {
    if (!value.is_object())
      error("an object");
  }

  const json &raw() const { return value; }

private:
  std::string describe() const {
    std::string text =
        value.dump(-1, ' ', false, json::error_handler_t::replace);
    return text.size() <= 64
               ? text
               : text.substr(0, wholeLength(text.data(), 61)) + "...";
  }

  const json &value;
  std::string path;
};

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_MANIFESTVALUE_H
