//===- LaunchWatch.cpp - the findings of a replayed launch ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/LaunchWatch.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/raw_ostream.h"

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

void LaunchWatch::add(OddValue one) {
  for (const OddValue &known : odd)
    if (known.argument == one.argument && known.question == one.question)
      return;
  odd.push_back(std::move(one));
}

void LaunchWatch::print(PrintOp op, ArrayRef<int64_t> row,
                        const RowValues &values) {
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
    values.write(stream, value);
    rest = after;
  }
  stream << rest;
  printed.push_back(std::move(text));
}
