//===- Options.cpp - how options of a compilation are spelt ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "mlafix/Compiler.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Config/llvm-config.h"

using namespace llvm;
using namespace mlafix;

namespace {
struct EmitName {
  Emit emit;
  StringLiteral name;
};
} // namespace

static constexpr EmitName emitNames[] = {
    {Emit::Signature, "signature"},
    {Emit::Source, "source"},
    {Emit::Specialized, "specialized"},
    {Emit::Canonical, "canonical"},
    {Emit::Report, "report"},
    {Emit::Header, "header"},
    {Emit::TvmFfi, "tvm-ffi"},
    {Emit::Faults, "faults"},
    {Emit::Lowered, "lowered"},
    {Emit::Layout, "layout"},
    {Emit::Distributed, "distributed"},
    {Emit::MLIR, "mlir"},
    {Emit::LLVM, "llvm"},
    {Emit::PTX, "ptx"},
    {Emit::Cubin, "cubin"},
    {Emit::Object, "object"},
    {Emit::Unit, "unit"},
};

std::string_view mlafix::spelling(Emit emit) {
  return find_if(emitNames,
                 [&](const EmitName &entry) { return entry.emit == emit; })
      ->name;
}

bool mlafix::parseEmit(std::string_view text, Emit &emit) {
  const auto *entry = find_if(emitNames, [&](const EmitName &candidate) {
    return candidate.name == StringRef(text);
  });
  if (entry == std::end(emitNames))
    return false;
  emit = entry->emit;
  return true;
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
    auto [name, value] = item.trim().split('=');
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
