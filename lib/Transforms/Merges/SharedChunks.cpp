//===- SharedChunks.cpp - chunks in shared memory -------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Merges/SharedChunks.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlafix;

/// Returns the number of elements of a pack, or 1 for a number.
static int64_t countElements(Type type) {
  auto pack = dyn_cast<VectorType>(type);
  return pack ? pack.getNumElements() : 1;
}

/// Returns the alignment of a pack in shared memory: its size in bytes, but at
/// most 16.
static llvm::MaybeAlign alignmentOf(VectorType pack) {
  return llvm::MaybeAlign(std::min<int64_t>(
      16, pack.getNumElements() * pack.getElementTypeBitWidth() / 8));
}

SharedChunks::SharedChunks(OpBuilder &b, Location loc, RowOp row,
                           LayoutAttr layout, TypeRange types)
    : b(b), loc(loc), group(row.getGroups()[0]),
      groupThreads(row.getGroups()[2]), member(row.getGroups()[3]),
      threads(layout.getThreads()), types(types) {
  int64_t elements = 0; // elements per thread
  for (Type type : types) {
    assert(getElementTypeOrSelf(type).isF32() && "a state is of f32");
    elements += countElements(type);
  }
  buffer = allocShared(b, loc, {threads * elements}, b.getF32Type());
}

/// Returns the index in the buffer of a value of one thread: the thread of
/// `group` that has the same number in its group as this thread. The value has
/// `elements` elements, and `before` elements precede it in the list of values.
/// The buffer holds the first value of all threads, then the second value of
/// all threads, and so on.
Value SharedChunks::indexOf(Value group, int64_t before, int64_t elements) {
  IndexBuilder x(b, loc);
  Value thread = x.toIndex(x.add(x.mul(group, groupThreads), member));
  return x.add(x.constant(before * threads),
               x.mul(thread, x.constant(elements)));
}

void SharedChunks::write(ValueRange values) {
  int64_t before = 0;
  for (Value value : values) {
    int64_t count = countElements(value.getType());
    Value at = indexOf(group, before, count);
    if (auto type = dyn_cast<VectorType>(value.getType()))
      vector::StoreOp::create(b, loc, value, buffer, at,
                              /*nontemporal=*/false, alignmentOf(type));
    else
      memref::StoreOp::create(b, loc, value, buffer, at);
    before += count;
  }
}

SmallVector<Value> SharedChunks::read(Value group) {
  int64_t before = 0;
  SmallVector<Value> values;
  for (Type type : types) {
    int64_t count = countElements(type);
    Value at = indexOf(group, before, count);
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
