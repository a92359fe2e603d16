//===- SegmentPredicate.cpp - whether segments are selected ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GPU/SegmentPredicate.h"

#include "lib/Transforms/IndexBuilder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlafix;

SegmentPredicate::SegmentPredicate(OpBuilder &b, RaggedForallOp grid)
    : b(b), loc(grid.getLoc()), predicate(grid.getPredicate().front()) {
  for (LoadOp load : predicate.getOps<LoadOp>())
    if (std::optional<Bound> bound = getBound(load))
      bounded.push_back({load, *bound});
}

/// The bound that the predicate of `load` is, if it is nothing else.
std::optional<SegmentPredicate::Bound>
SegmentPredicate::getBound(LoadOp load) const {
  Value condition = load.getPredicate();
  auto below =
      condition ? condition.getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  if (!below || below.getRhs().getParentBlock() == &predicate)
    return std::nullopt;
  Bound bound = {arith::CmpIPredicate::sle, 0, below.getRhs()};
  if (below.getPredicate() == arith::CmpIPredicate::ult)
    bound.comparison = arith::CmpIPredicate::ule;
  else if (below.getPredicate() != arith::CmpIPredicate::slt)
    return std::nullopt;
  Value segment = below.getLhs();
  APInt augment;
  if (auto sum = segment.getDefiningOp<arith::AddIOp>();
      sum && matchPattern(sum.getRhs(), m_ConstantInt(&augment)) &&
      augment.isNonNegative() && augment.isIntN(16)) {
    bound.ahead = augment.getSExtValue();
    segment = sum.getLhs();
  }
  if (segment != predicate.getArgument(0))
    return std::nullopt;
  return bound;
}

/// `isBounded`: the segment may be past the bounds of loads.
Value SegmentPredicate::build(Value segment, bool isBounded) {
  IRMapping mapping;
  mapping.map(predicate.getArgument(0), segment);
  for (Operation &op : predicate.without_terminator())
    b.clone(op, mapping);
  if (!isBounded)
    for (const BoundedLoad &each : bounded) {
      auto load =
          cast<LoadOp>(mapping.lookup(LoadOp(each.load).getOperation()));
      load.getPredicateMutable().clear();
      load.getOtherMutable().clear();
    }
  auto yield = cast<YieldOp>(predicate.getTerminator());
  return mapping.lookupOrDefault(yield.getValues()[0]);
}

/// Whether all segments before `end` exist and are within the bounds of loads,
/// or, as another computation of it, whether not.
Value SegmentPredicate::endsWithin(Value end, Value segments, bool isWithin) {
  IndexBuilder x(b, loc);
  Value all;
  auto add = [&](const Bound &bound) {
    arith::CmpIPredicate comparison = bound.comparison;
    if (!isWithin)
      comparison = arith::invertPredicate(comparison);
    Value one =
        x.compare(comparison, x.add(end, x.constant(bound.ahead)), bound.limit);
    if (!all)
      all = one;
    else if (isWithin)
      all = x.band(all, one);
    else
      all = arith::OrIOp::create(b, loc, all, one);
  };
  add({arith::CmpIPredicate::ule, 0, segments});
  for (const BoundedLoad &each : bounded)
    add(each.bound);
  return all;
}

Value SegmentPredicate::isAnySelected(Value base, Value member, int64_t count,
                                      int64_t step, Value segments) {
  IndexBuilder x(b, loc);
  Value last = x.sub(segments, x.constant(1));
  auto buildAny = [&](bool isWhole) {
    Value any;
    for (int64_t i = 0; i < count; ++i) {
      Value segment = x.add(x.add(base, member), x.constant(i * step));
      // The last one again rather than a branch: all loads are on the way at
      // once.
      if (!isWhole)
        segment = arith::MinUIOp::create(b, loc, segment, last);
      Value selected = build(segment, /*isBounded=*/!isWhole);
      any = any ? arith::OrIOp::create(b, loc, any, selected) : selected;
    }
    return any;
  };
  if (bounded.empty())
    return buildAny(/*isWhole=*/false);
  // A GPU has seven predicates for a thread, so that loads which each have one
  // wait for each other. Two branches rather than one with an else: what is
  // loaded first in either is prefetched (EarlyLoads.cpp).
  Value end = x.add(base, x.constant(count * step));
  Value any = arith::ConstantIntOp::create(b, loc, false, 1);
  for (bool isWhole : {true, false}) {
    auto branch = scf::IfOp::create(b, loc, TypeRange{b.getI1Type()},
                                    endsWithin(end, segments, isWhole),
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, any);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, loc, buildAny(isWhole));
    any = branch.getResult(0);
  }
  return any;
}
