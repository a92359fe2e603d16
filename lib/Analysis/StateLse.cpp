//===- StateLse.cpp - the lse of a state, on the host ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/StateLse.h"
#include "dialect/Bases.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlafix;

int64_t mlafix::lseOfLoaded(int64_t bits) {
  return std::isinf(floatOf(bits)) ? kEmptyLse : bits;
}

static bool isBaseE(StateType type, Operation *op) {
  if (std::optional<LogBase> base = type.getBase().getBase())
    return *base == LogBase::E;
  return resolveBase(op->getParentOfType<KernelOp>(), type.getBase().getName(),
                     [](StringRef) { return StringRef(); }) != "2";
}

static std::optional<int64_t> computeMerge(MergeOp merge, GetNumber get) {
  SmallVector<double> lses;
  double largest = -INFINITY;
  for (Value state : merge.getStates()) {
    std::optional<int64_t> bits = get(state);
    if (!bits)
      return std::nullopt;
    lses.push_back(floatOf(*bits));
    if (std::isnan(lses.back()))
      return *bits;
    largest = std::max(largest, lses.back());
  }
  if (std::isinf(largest))
    return kEmptyLse;
  bool isE = isBaseE(merge.getType(), merge);
  double sum = 0;
  for (double lse : lses)
    sum += isE ? std::exp(lse - largest) : std::exp2(lse - largest);
  return bitsOf(largest + (isE ? std::log(sum) : std::log2(sum)));
}

std::optional<int64_t> mlafix::computeLse(Operation *op, GetNumber get) {
  if (isa<IdentityOp>(op))
    return kEmptyLse;
  if (auto merge = dyn_cast<MergeOp>(op))
    return computeMerge(merge, get);
  if (auto made = dyn_cast<MakeStateOp>(op)) {
    std::optional<int64_t> lse = get(made.getLse());
    return lse ? std::optional(lseOfLoaded(*lse)) : std::nullopt;
  }
  if (auto mask = dyn_cast<MaskOp>(op)) {
    std::optional<int64_t> predicate = get(mask.getPredicate());
    if (!predicate)
      return std::nullopt;
    return *predicate ? get(mask.getState()) : kEmptyLse;
  }
  auto rebase = dyn_cast<RebaseOp>(op);
  std::optional<int64_t> lse = rebase ? get(rebase.getState()) : std::nullopt;
  if (!lse)
    return std::nullopt;
  bool from = isBaseE(rebase.getState().getType(), op),
       to = isBaseE(rebase.getType(), op);
  double factor = from == to ? 1 : to ? M_LN2 : M_LOG2E;
  double whole = floatOf(*lse), largest = std::numeric_limits<float>::max();
  return bitsOf(std::isinf(whole)
                    ? whole
                    : std::clamp(whole * factor, -largest, largest));
}
