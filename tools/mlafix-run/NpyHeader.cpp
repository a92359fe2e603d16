//===- NpyHeader.cpp - The header of an .npy file -------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Parses the header of an .npy file. The header is a Python dictionary with
// three keys. Their values are a string, a boolean and a tuple of integers.
//
//===----------------------------------------------------------------------===//

#include "NpyHeader.h"

#include <stdexcept>

using namespace mlafix::run;

namespace {

class Parser {
public:
  explicit Parser(const std::string &text) : text(text) {}

  NpyHeader parse() {
    NpyHeader header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      std::string key = parseString();
      expect(':');
      if (key == "descr") {
        if (peek() == '[')
          error("a plain dtype", "a structured one");
        header.descr = parseString();
        descr = true;
      } else if (key == "fortran_order") {
        header.fortranOrder = parseBool();
        order = true;
      } else if (key == "shape") {
        header.shape = parseTuple();
        shape = true;
      } else {
        error("the keys descr, fortran_order and shape", "\"" + key + "\"");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!descr || !order || !shape)
      error("the keys descr, fortran_order and shape", "fewer");
    return header;
  }

private:
  [[noreturn]] static void error(const std::string &expected,
                                 const std::string &got) {
    throw std::runtime_error("expected " + expected + " in the header, got " +
                             got);
  }

  char peek() {
    while (next < text.size() && (text[next] == ' ' || text[next] == '\n'))
      ++next;
    return next < text.size() ? text[next] : '\0';
  }
  bool accept(char c) {
    if (peek() != c)
      return false;
    ++next;
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      error(std::string("'") + c + "'",
            next < text.size() ? "'" + text.substr(next, 8) + "'" : "its end");
  }

  std::string parseString() {
    char quote = peek();
    if (quote != '\'' && quote != '"')
      error("a string", "'" + text.substr(next, 8) + "'");
    size_t end = text.find(quote, next + 1);
    if (end == text.npos)
      error("the end of a string", "none");
    std::string result = text.substr(next + 1, end - next - 1);
    next = end + 1;
    return result;
  }

  bool parseBool() {
    peek();
    for (bool value : {true, false}) {
      std::string word = value ? "True" : "False";
      if (text.compare(next, word.size(), word) == 0) {
        next += word.size();
        return value;
      }
    }
    error("True or False", "'" + text.substr(next, 8) + "'");
  }

  std::vector<int64_t> parseTuple() {
    std::vector<int64_t> values;
    expect('(');
    while (!accept(')')) {
      int64_t value = 0;
      char digit = peek();
      if (digit < '0' || digit > '9' || values.size() == 64)
        error("a tuple of sizes", "'" + text.substr(next, 8) + "'");
      for (; next < text.size() && text[next] >= '0' && text[next] <= '9';
           ++next)
        if (__builtin_mul_overflow(value, int64_t(10), &value) ||
            __builtin_add_overflow(value, int64_t(text[next] - '0'), &value))
          error("sizes that fit 64 bits", "a larger one");
      accept('L'); // the suffix of Python 2's long integers
      values.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  const std::string &text;
  size_t next = 0;
};

} // namespace

NpyHeader mlafix::run::parseNpyHeader(const std::string &text) {
  return Parser(text).parse();
}
