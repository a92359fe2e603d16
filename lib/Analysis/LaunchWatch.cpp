//===- LaunchWatch.cpp - what a watched launch says -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/LaunchWatch.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/raw_ostream.h"

#include <charconv>

using namespace mlir;
using namespace mlafix;

void LaunchWatch::addBroken(BrokenPromise one) {
  for (const BrokenPromise &known : broken)
    if (known.op == one.op)
      return;
  broken.push_back(std::move(one));
}

void LaunchWatch::check(DistinctOp op, const SmallLaunch &launch) {
  unsigned argument = getKernelArgument(op.getTable()).getArgNumber();
  auto table = launch.elements.find(argument);
  if (table == launch.elements.end())
    return;
  llvm::DenseSet<int64_t> seen;
  for (auto [position, entry] : llvm::enumerate(table->second)) {
    if (entry < 0 || seen.insert(entry).second)
      continue;
    SmallVector<int64_t> element;
    int64_t rest = position;
    for (int64_t size : llvm::reverse(launch.sizes.find(argument)->second)) {
      element.insert(element.begin(), rest % size);
      rest /= size;
    }
    return addBroken({op, {}, std::move(element)});
  }
}

/// The shortest text that reads back as this float; "?" if the value is
/// unknown.
static void write(llvm::raw_ostream &stream, Type type,
                  std::optional<int64_t> number) {
  if (!number) {
    stream << "?";
  } else if (type.isInteger(1)) {
    stream << (*number ? "true" : "false");
  } else if (type.isIntOrIndex()) {
    stream << *number;
  } else {
    char text[32];
    float value = llvm::bit_cast<float>(static_cast<uint32_t>(*number));
    char *end = std::to_chars(text, text + sizeof text, value).ptr;
    stream << StringRef(text, end - text);
  }
}

void LaunchWatch::print(PrintOp op, ArrayRef<int64_t> row, GetNumber get) {
  if (printed.size() == kMaxTexts) {
    ++textsDropped;
    return;
  }
  PrintedText text = {op, SmallVector<int64_t>(row), {}};
  llvm::raw_string_ostream stream(text.text);
  StringRef rest = op.getText();
  for (Value value : op.getValues()) {
    auto [before, after] = rest.split("{}");
    stream << before;
    write(stream, value.getType(), get(value));
    rest = after;
  }
  stream << rest;
  printed.push_back(std::move(text));
}

void LaunchWatch::finish(Replay &replay) {
  replay.broken = std::move(broken);
  replay.printed = std::move(printed);
  replay.textsDropped = textsDropped;
}
