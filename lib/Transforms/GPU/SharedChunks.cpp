//===- SharedChunks.cpp - chunks in shared memory -------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GPU/SharedChunks.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/States/F32Builder.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

/// The least number of groups whose chunks all threads add. Launches have at
/// least this many groups of eight threads (mlafix/LaneGroups.h); fewer were
/// not measured.
constexpr int64_t kLeastAddedByAll = 16;

/// The elements of a pack; 1 for a number.
static int64_t countElements(Type type) {
  auto pack = dyn_cast<VectorType>(type);
  return pack ? pack.getNumElements() : 1;
}

/// The alignment of a pack in shared memory: 16 bytes if it has at least 16.
static llvm::MaybeAlign alignmentOf(VectorType pack) {
  return llvm::MaybeAlign(std::min<int64_t>(
      16, pack.getNumElements() * pack.getElementTypeBitWidth() / 8));
}

SharedChunks::SharedChunks(OpBuilder &b, Location loc, RowOp row,
                           LayoutAttr layout, TypeRange types)
    : b(b), loc(loc), group(row.getGroups()[0]), groups(row.getGroups()[1]),
      groupThreads(row.getGroups()[2]), member(row.getGroups()[3]),
      threads(layout.getThreads()), mostGroups(layout.getGroups()),
      types(types), elements(0) {
  for (Type type : types) {
    assert(getElementTypeOrSelf(type).isF32() && "a state is of f32");
    elements += countElements(type);
  }
  buffer = allocShared(b, loc, {threads * elements}, b.getF32Type());
}

/// Layout in which all threads of the block have adjacent values: one address
/// serves all values of a thread.
SharedChunks::Place SharedChunks::placeOf(Value group) {
  IndexBuilder x(b, loc);
  return {x.constant(0), threads,
          x.toIndex(x.add(x.mul(group, groupThreads), member))};
}

/// Layout in which the values of a group with the fewest threads are adjacent:
/// one address serves an element of all groups.
SharedChunks::Place SharedChunks::placeInGroup(Value group) {
  IndexBuilder x(b, loc);
  constexpr int64_t kThreads = LayoutAttr::kLeastGrouped;
  return {x.toIndex(x.mul(group, x.i32(kThreads * elements))), kThreads,
          x.toIndex(member)};
}

/// The index of this thread's value of `elements` elements, with `before`
/// elements in front of it.
Value SharedChunks::indexOf(const Place &place, int64_t before,
                            int64_t elements) {
  IndexBuilder x(b, loc);
  Value first = x.add(place.first, x.constant(before * place.threads));
  return x.add(first, x.mul(place.thread, x.constant(elements)));
}

void SharedChunks::write(ValueRange values, const Place &place) {
  int64_t before = 0;
  for (Value value : values) {
    int64_t count = countElements(value.getType());
    Value at = indexOf(place, before, count);
    if (auto type = dyn_cast<VectorType>(value.getType()))
      vector::StoreOp::create(b, loc, value, buffer, at,
                              /*nontemporal=*/false, alignmentOf(type));
    else
      memref::StoreOp::create(b, loc, value, buffer, at);
    before += count;
  }
}

SmallVector<Value> SharedChunks::read(const Place &place) {
  int64_t before = 0;
  SmallVector<Value> values;
  for (Type type : types) {
    int64_t count = countElements(type);
    Value at = indexOf(place, before, count);
    if (auto pack = dyn_cast<VectorType>(type))
      values.push_back(vector::LoadOp::create(b, loc, pack, buffer, at,
                                              /*nontemporal=*/false,
                                              alignmentOf(pack)));
    else
      values.push_back(memref::LoadOp::create(b, loc, buffer, at));
    before += count;
  }
  return values;
}

void SharedChunks::write(ValueRange values) { write(values, placeOf(group)); }

SmallVector<Value> SharedChunks::read(Value group) {
  return read(placeOf(group));
}

/// The least number of groups for which all threads can add the values: a
/// group's elements must not exceed the number of groups.
static int64_t countLeastGroups(int64_t elements) {
  return std::max<int64_t>(kLeastAddedByAll, llvm::PowerOf2Ceil(elements));
}

Value SharedChunks::buildHasThreadForEach() {
  int64_t least = countLeastGroups(elements);
  if (least > mostGroups)
    return Value();
  IndexBuilder x(b, loc);
  Value areMany = x.compare(arith::CmpIPredicate::uge, groups, x.i32(least));
  Value areSmall = x.compare(arith::CmpIPredicate::eq, groupThreads,
                             x.i32(LayoutAttr::kLeastGrouped));
  return x.band(areMany, areSmall);
}

void SharedChunks::writeToAdd(ValueRange values) {
  write(values, placeInGroup(group));
}

void SharedChunks::add() {
  IndexBuilder x(b, loc);
  F32Builder f(b, loc);
  constexpr int64_t kThreads = LayoutAttr::kLeastGrouped;
  int64_t ofGroup = kThreads * elements;
  Value thread = x.add(x.mul(group, x.i32(kThreads)), member);
  auto branch = scf::IfOp::create(b, loc, x.ult(thread, x.i32(ofGroup)),
                                  /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value element = x.toIndex(thread);
  // Memory of groups that a launch lacks exists anyway. Their number is a power
  // of two.
  SmallVector<Value> values;
  for (int64_t i = 0; i < mostGroups; ++i)
    values.push_back(memref::LoadOp::create(
        b, loc, buffer, x.add(element, x.constant(i * ofGroup))));
  Value sum = values[0];
  for (int64_t i = 1; i < mostGroups; ++i) {
    Value value = values[i];
    if (i >= countLeastGroups(elements))
      value = f.select(x.compare(arith::CmpIPredicate::ugt, groups,
                                 x.i32(llvm::bit_floor<uint64_t>(i))),
                       value, f.constant(-0.0f));
    sum = f.add(sum, value);
  }
  memref::StoreOp::create(b, loc, sum, buffer, element);
}

SmallVector<Value> SharedChunks::readSums() {
  IndexBuilder x(b, loc);
  return read(placeInGroup(x.i32(0)));
}
