//===- StateLse.cpp - the lse of a state, on the host ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/StateLse.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

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

std::optional<MergeWeights> mlafix::weighStates(MergeOp merge, GetNumber get) {
  MergeWeights result;
  result.isBaseE = isBaseE(merge.getType(), merge);
  SmallVector<double> lses;
  for (Value state : merge.getStates()) {
    std::optional<int64_t> bits = get(state);
    if (!bits)
      return std::nullopt;
    lses.push_back(floatOf(*bits));
    // If the lse is NaN, std::max keeps `largest`.
    result.largest = std::max(result.largest, lses.back());
  }
  for (double lse : lses) {
    double distance = lse - result.largest;
    result.weights.push_back(std::isinf(result.largest) && !std::isnan(lse) ? 0
                             : result.isBaseE ? std::exp(distance)
                                              : std::exp2(distance));
  }
  return result;
}

static std::optional<int64_t> computeMerge(MergeOp merge, GetNumber get) {
  std::optional<MergeWeights> states = weighStates(merge, get);
  if (!states)
    return std::nullopt;
  double sum =
      std::accumulate(states->weights.begin(), states->weights.end(), 0.0);
  if (sum == 0)
    return kEmptyLse;
  return bitsOf(states->largest +
                (states->isBaseE ? std::log(sum) : std::log2(sum)));
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
