//===- RaggedRows.cpp - rows selected by a ragged grid --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Grid/RaggedRows.h"

#include "lib/Transforms/GridLowering.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/ThreadOps.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlafix;

RaggedRows::RaggedRows(OpBuilder &b, Location loc, int64_t positions,
                       ValueRange inner, Value threadId)
    : b(b), loc(loc), x(b, loc), positions(positions), inner(inner),
      threadId(threadId),
      prefix(allocShared(b, loc, {positions}, b.getI32Type())),
      shift(allocShared(b, loc, {positions}, b.getI32Type())) {}

Value RaggedRows::saturatingAdd(Value a, Value c) {
  return arith::MinUIOp::create(b, loc, x.add(a, c), x.i32(INT32_MAX));
}

void RaggedRows::addBundle(RowBundle &bundle) {
  // Only bundles with at most one row per lane of a warp have marks, since the
  // ballot of one warp collects all marks of a bundle.
  if (bundle.rows <= limits::warpThreads)
    bundle.marks = allocShared(b, loc, {bundle.rows}, b.getI32Type());
  bundles.push_back(&bundle);
}

void RaggedRows::clear() {
  for (RowBundle *bundle : bundles) {
    if (!bundle->marks)
      continue;
    auto has = scf::IfOp::create(b, loc, x.ult(threadId, x.i32(bundle->rows)),
                                 /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(has.thenBlock()->getTerminator());
    memref::StoreOp::create(b, loc, x.i32(0), bundle->marks,
                            ValueRange{x.toIndex(threadId)});
  }
}

/// Builds the product of the inner extents.
Value RaggedRows::innerSize() {
  Value size = x.constant(1);
  for (Value extent : inner)
    size = x.mul(size, extent);
  return size;
}

/// Computes the block's first bundle and the number of blocks that share a
/// bundle. This number is the number of blocks divided by the number of bundles
/// in the chunk, rounded down to a power of two, but at least 1. If the bundle
/// is scattered (RowBundle::scatteredRows), the number is at least the number
/// of its parts, rounded down to a power of two. A block searches for the
/// segment of each part that it processes, which can take longer than storing
/// the part. Therefore a small number of rows is not scattered.
void RaggedRows::shareBundle(RowBundle &bundle) {
  Value blocks = buildGridSize(b, loc);
  auto leadingZeros = [&](Value value) {
    return math::CountLeadingZerosOp::create(b, loc, value);
  };
  // The number of bundles minus 1. `total` is at least 1.
  Value last = x.div(x.sub(total, x.i32(1)), x.i32(bundle.rows));
  // `spare` is floor(log2(blocks)) - ceil(log2(bundles)).
  Value ofBlocks = leadingZeros(blocks);
  Value spare = x.sub(x.sub(leadingZeros(last), ofBlocks), x.i32(1));
  Value least = x.i32(0);
  if (bundle.scatteredRows) {
    // floor(log2(parts)), or 0 if there are no parts.
    Value parts = x.div(x.toI32(innerSize()), x.i32(bundle.perRow));
    parts = arith::MaxUIOp::create(b, loc, parts, x.i32(1));
    Value isLong = x.compare(arith::CmpIPredicate::uge, total,
                             x.i32(positions * bundle.scatteredRows));
    least = x.select(isLong, x.sub(x.i32(31), leadingZeros(parts)), least);
  }
  bundle.shared = arith::MaxSIOp::create(b, loc, spare, least);
  bundle.first = x.shr(bundle.block, bundle.shared);
}

/// Marks the first row of the segment at `position` that is in the block's
/// first bundle, if there is one. The rows of the segment have the numbers from
/// `before` up to, but not including, `end`.
void RaggedRows::mark(const RowBundle &bundle, Value position, Value before,
                      Value end) {
  Value rows = x.i32(bundle.rows);
  Value first = x.mul(bundle.first, rows);
  Value begin = arith::MaxUIOp::create(b, loc, before, first);
  Value meets =
      x.ult(begin, arith::MinUIOp::create(b, loc, end, x.add(first, rows)));
  auto branch = scf::IfOp::create(b, loc, meets, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  Value place = x.toIndex(x.sub(begin, first));
  memref::StoreOp::create(b, loc, x.add(x.toI32(position), x.i32(1)),
                          bundle.marks, place);
}

void RaggedRows::publish(Value position, ArrayRef<Value> starts,
                         ArrayRef<Value> lengths, Value before, Value total) {
  this->total = total;
  for (RowBundle *bundle : bundles)
    shareBundle(*bundle);
  for (auto [k, length] : llvm::enumerate(lengths)) {
    Value own = x.add(position, x.constant(k));
    memref::StoreOp::create(b, loc, before, prefix, own);
    // Store what must be added to the number of a row of this segment to get
    // the row's index. 32 bits suffice for all rows in use.
    memref::StoreOp::create(b, loc, x.sub(x.toI32(starts[k]), before), shift,
                            own);
    Value end = saturatingAdd(before, length);
    for (RowBundle *bundle : bundles)
      if (bundle->marks)
        mark(*bundle, own, before, end);
    before = end;
  }
}

/// Searches for the last position whose prefix sum is at most `number` (i32),
/// by bisection.
Value RaggedRows::search(Value number) {
  Value position = x.constant(0);
  for (int64_t step = positions / 2; step >= 1; step /= 2) {
    Value candidate = x.add(position, x.constant(step));
    Value start = memref::LoadOp::create(b, loc, prefix, ValueRange{candidate});
    position = x.select(x.compare(arith::CmpIPredicate::ule, start, number),
                        candidate, position);
  }
  return position;
}

/// Returns the number of the last row of the segment at `position` plus 1, i32.
Value RaggedRows::endOf(Value position) {
  Value next = x.add(position, x.constant(1)), last = x.constant(positions - 1);
  Value known = arith::MinUIOp::create(b, loc, next, last);
  Value end = memref::LoadOp::create(b, loc, prefix, ValueRange{known});
  return x.select(x.compare(arith::CmpIPredicate::ugt, next, last), total, end);
}

/// Returns the position of the segment that contains this thread's row of the
/// block's first bundle: the segment of the last mark at or before the row. The
/// result is arbitrary if there is no such row.
Value RaggedRows::findMarked(const RowBundle &bundle) {
  Value at = x.i32(0);
  if (bundle.rows > 1) {
    Value lane = x.band(threadId, x.i32(limits::warpThreads - 1));
    Value exists = x.ult(lane, x.i32(bundle.rows));
    Value own =
        memref::LoadOp::create(b, loc, bundle.marks,
                               ValueRange{x.toIndex(arith::MinUIOp::create(
                                   b, loc, lane, x.i32(bundle.rows - 1)))});
    Value isMark =
        x.band(exists, x.compare(arith::CmpIPredicate::ne, own, x.i32(0)));
    Value marks = buildBallot(b, loc, isMark);
    Value before = x.sub(x.shl(x.i32(2), bundle.slot), x.i32(1));
    Value last =
        x.sub(x.i32(limits::warpThreads - 1),
              math::CountLeadingZerosOp::create(b, loc, x.band(marks, before)));
    at = arith::MaxSIOp::create(b, loc, last, x.i32(0));
  }
  Value found =
      memref::LoadOp::create(b, loc, bundle.marks, ValueRange{x.toIndex(at)});
  return x.toIndex(x.sub(found, x.i32(1)));
}

void RaggedRows::forEachRow(
    const RowBundle &bundle,
    function_ref<void(Value position, Value row, ValueRange inner)> body) {
  Value firstPosition = x.constant(0), firstEnd = x.i32(0);
  if (bundle.marks) {
    firstPosition = findMarked(bundle);
    firstEnd = endOf(firstPosition);
  }
  Value shared = x.toIndex(bundle.shared), slot = x.toIndex(bundle.slot);
  Value perRow = x.i32(bundle.perRow), size = innerSize();
  Value parts = x.shl(x.i32(1), bundle.shared);
  Value innerStep = x.toIndex(x.mul(parts, perRow));

  // The parts of all bundles are distributed round-robin over the blocks. This
  // thread has a row in ceil((total - slot) / rows) of the bundles.
  Value rows = x.constant(bundle.rows);
  Value beyond = x.add(x.toIndex(total), x.constant(bundle.rows - 1));
  Value bundles = x.div(x.sub(beyond, slot), rows);
  auto loop = scf::ForOp::create(
      b, loc, x.toIndex(bundle.block), x.shl(bundles, shared),
      x.toIndex(buildGridSize(b, loc)), ValueRange{firstPosition, firstEnd});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value part = x.band(x.toI32(loop.getInductionVar()), x.sub(parts, x.i32(1)));
  Value firstInner = x.toIndex(x.add(x.mul(part, perRow), bundle.place));
  Value at = x.shr(loop.getInductionVar(), shared);
  Value number = x.toI32(x.add(x.mul(at, rows), slot));
  Value position = loop.getRegionIterArg(0), end = loop.getRegionIterArg(1);
  // Skip the search if the row is in the same segment as this thread's previous
  // row.
  auto isNew = scf::IfOp::create(
      b, loc, TypeRange{b.getIndexType(), b.getI32Type()},
      x.compare(arith::CmpIPredicate::uge, number, end), true);
  b.setInsertionPointToStart(isNew.elseBlock());
  scf::YieldOp::create(b, loc, ValueRange{position, end});
  b.setInsertionPointToStart(isNew.thenBlock());
  Value found = search(number);
  scf::YieldOp::create(b, loc, ValueRange{found, endOf(found)});
  b.setInsertionPointToEnd(loop.getBody());
  position = isNew.getResult(0);
  Value row = x.toIndex(x.add(
      memref::LoadOp::create(b, loc, shift, ValueRange{position}), number));
  auto yield = scf::YieldOp::create(b, loc, isNew.getResults());
  b.setInsertionPoint(yield);
  buildLoop(b, loc, firstInner, size, innerStep, [&](Value linear) {
    body(position, row, x.delinearize(linear, inner));
  });
}

//===----------------------------------------------------------------------===//
// Predicates of segments
//===----------------------------------------------------------------------===//

SegmentPredicate::SegmentPredicate(OpBuilder &b, RaggedForallOp grid)
    : b(b), loc(grid.getLoc()), predicate(grid.getPredicate().front()) {
  for (LoadOp load : predicate.getOps<LoadOp>())
    if (std::optional<Bound> bound = getBound(load))
      bounded.push_back({load, *bound});
}

/// Returns the bound that the predicate of `load` puts on the segment number.
/// Returns nullopt if the predicate is not such a bound.
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

/// Builds the predicate of `segment`. With `checksBounds`, its loads keep the
/// predicates that check their bounds. Without, the segment must be in bounds.
Value SegmentPredicate::build(Value segment, bool checksBounds) {
  IRMapping mapping;
  mapping.map(predicate.getArgument(0), segment);
  for (Operation &op : predicate.without_terminator())
    b.clone(op, mapping);
  if (!checksBounds)
    for (const BoundedLoad &each : bounded) {
      auto load =
          cast<LoadOp>(mapping.lookup(LoadOp(each.load).getOperation()));
      load.getPredicateMutable().clear();
      load.getOtherMutable().clear();
    }
  auto yield = cast<YieldOp>(predicate.getTerminator());
  return mapping.lookupOrDefault(yield.getValues()[0]);
}

/// Builds an i1 that is true if all segments before `end` exist and are within
/// the bounds of loads. If `isWithin` is false, builds the negation instead, by
/// inverting the comparisons.
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
      // Clamp the segment number to the last segment instead of branching, so
      // that all loads are in flight at once.
      if (!isWhole)
        segment = arith::MinUIOp::create(b, loc, segment, last);
      Value selected = build(segment, /*checksBounds=*/!isWhole);
      any = any ? arith::OrIOp::create(b, loc, any, selected) : selected;
    }
    return any;
  };
  if (bounded.empty())
    return buildAny(/*isWhole=*/false);
  // A thread has only seven predicate registers, so loads that each have a
  // predicate would wait for one another. Therefore a first scf.if loads
  // without predicates if all segments exist and are within the bounds. A
  // second scf.if loads with predicates if not. The second one is not the else
  // branch of the first, because the first loads of each scf.if are prefetched
  // (PrefetchCandidates.cpp).
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
