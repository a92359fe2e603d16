//===- Options.cpp - parses and spells options of a compilation -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "mlafix/Compiler.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"

using namespace llvm;
using namespace mlafix;

template <typename Value>
using Spellings = ArrayRef<std::pair<StringLiteral, Value>>;

static constexpr std::pair<StringLiteral, Emit> emissions[] = {
#define MLAFIX_EMISSION(EMIT, NAME, MEANING) {NAME, Emit::EMIT},
#include "mlafix/CompilerOptions.def"
};

static constexpr std::pair<StringLiteral, AssemblerKind> assemblers[] = {
#define MLAFIX_ASSEMBLER(KIND, NAME, MEANING) {NAME, AssemblerKind::KIND},
#include "mlafix/CompilerOptions.def"
};

/// Sets `value` to the candidate whose spelling is `text`. Sets `error` and
/// returns false if there is none.
template <typename Value>
static bool parseOneOf(Spellings<Value> spellings, StringRef text, Value &value,
                       std::string &error) {
  for (const auto &[name, candidate] : spellings)
    if (name == text) {
      value = candidate;
      return true;
    }
  error = "expected one of " + join(make_first_range(spellings), ", ") +
          ", got '" + text.str() + "'";
  return false;
}

std::string_view mlafix::spelling(Emit emit) {
  return emissions[static_cast<size_t>(emit)].first;
}

bool mlafix::parseEmit(std::string_view text, Emit &emit, std::string &error) {
  return parseOneOf<Emit>(emissions, text, emit, error);
}

bool mlafix::parseAssembler(std::string_view text, AssemblerKind &kind,
                            std::string &error) {
  return parseOneOf<AssemblerKind>(assemblers, text, kind, error);
}

std::string_view mlafix::compilerVersion() {
  return "mlafix " MLAFIX_VERSION ", LLVM " LLVM_VERSION_STRING;
}

std::vector<std::pair<std::string, std::int64_t>>
mlafix::chipNumbers(std::string_view target) {
#define MLAFIX_CHIP(TARGET, MULTIPROCESSORS, BANDWIDTH, SOURCE)                \
  if (target == TARGET)                                                        \
    return {{"multiprocessors", MULTIPROCESSORS}, {"bandwidth", BANDWIDTH}};
#include "lib/Machine/Chips.def"
  return {};
}

bool mlafix::parseBindings(std::string_view text, Bindings &bindings,
                           std::string &error) {
  SmallVector<StringRef> items;
  StringRef(text).split(items, ',');
  for (StringRef item : items) {
    // Use std::tie, because a C++17 lambda cannot capture a structured binding.
    StringRef name, value;
    std::tie(name, value) = item.trim().split('=');
    if (name.empty() || value.empty()) {
      error = ("expected bindings of the form NAME=VALUE,…, got '" +
               StringRef(text) + "'")
                  .str();
      return false;
    }
    if (any_of(bindings,
               [&](const auto &b) { return b.first == name.trim(); })) {
      error = ("expected each name once, got '" + name.trim() + "' twice in '" +
               StringRef(text) + "'")
                  .str();
      return false;
    }
    bindings.push_back({name.trim().str(), value.trim().str()});
  }
  return true;
}
