//===- MergeStates.cpp - the merge of lowered states ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/MergeStates.h"
#include "lib/Transforms/F32Builder.h"

using namespace mlir;
using namespace mlafix;

LoweredState mlafix::buildMerge(OpBuilder &b, Location loc,
                                ArrayRef<LoweredState> states, LogBase base) {
  F32Builder f(b, loc);
  Value max = states.front().max;
  for (const LoweredState &state : states.drop_front())
    max = f.max(max, state.max); // keeps NaN (N6)
  // All empty: any finite reference makes every weight 2^-inf = 0.
  Value zero = f.constant(0.0f);
  Value reference = f.select(f.equal(max, f.negInf()), zero, max);

  SmallVector<Value> dead;
  for (Value acc : states.front().acc)
    dead.push_back(f.splat(f.constant(-0.0f), acc.getType()));
  Value scale = f.constant(exponentScale(base));
  Value sum;
  SmallVector<Value> sums(dead.size());
  for (const LoweredState &state : states) {
    Value weight = f.exp2(f.mul(f.sub(state.max, reference), scale));
    Value isDead = f.equal(weight, zero);
    // -0.0 is what leaves every other value as it is, -0.0 included (N4); the
    // payload's own bits are dropped (N5).
    for (auto [acc, none, total] : llvm::zip(state.acc, dead, sums)) {
      Value payload = f.select(isDead, none, acc);
      Value factor = f.splat(weight, acc.getType());
      total = total ? f.fma(factor, payload, total) : f.mul(factor, payload);
    }
    sum = sum ? f.fma(weight, state.sum, sum) : f.mul(weight, state.sum);
  }
  return {max, sum, sums};
}
