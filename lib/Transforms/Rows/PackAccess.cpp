//===- PackAccess.cpp - loads and stores of one pack ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Rows/PackAccess.h"
#include "lib/Transforms/AccessPredicate.h"
#include "lib/Transforms/Layout/LongRows.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlafix;

SmallVector<Value> mlafix::buildIndices(OpBuilder &b, Location loc,
                                        const MemoryAccess &access,
                                        Value start) {
  SmallVector<Value> indices(access.indices);
  if (access.group) {
    IndexBuilder x(b, loc);
    int64_t size = access.getProduct().getGroup().getSize();
    Value first = x.mul(access.group, x.constant(size));
    start = x.add(first, access.isRow ? start : access.member);
  }
  if (access.slice && access.slice->begin) {
    IndexBuilder x(b, loc);
    start = x.add(start, x.constant(access.slice->begin));
  }
  if (start)
    indices.push_back(start);
  return indices;
}

/// Returns the element of the row from which the packs of an access are
/// counted: the first element of the accessed slice, or 0 for a whole row.
static int64_t firstOf(const MemoryAccess &access) {
  return access.slice ? access.slice->begin : 0;
}

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

/// Returns the indices of element `member` of group `start + i`, or of the
/// first element of this group if `member` is null.
static SmallVector<Value> buildMemberIndices(OpBuilder &b, Location loc,
                                             const MemoryAccess &access,
                                             Value start, int64_t i,
                                             Value member) {
  IndexBuilder x(b, loc);
  int64_t size = access.getProduct().getGroup().getSize();
  Value place = x.mul(start, x.constant(size));
  if (i)
    place = x.add(place, x.constant(i * size));
  if (member)
    place = x.add(place, member);
  SmallVector<Value> indices(access.indices);
  indices.push_back(place);
  return indices;
}

static void writeMember(OpBuilder &b, Location loc, const MemoryAccess &access,
                        Value pack, Value start) {
  int64_t count = cast<VectorType>(pack.getType()).getNumElements();
  for (int64_t i = 0; i < count; ++i) {
    Value element = vector::ExtractOp::create(b, loc, pack, i);
    SmallVector<Value> indices =
        buildMemberIndices(b, loc, access, start, i, access.member);
    memref::StoreOp::create(b, loc, narrow(b, loc, access.memref, element),
                            access.memref, indices);
  }
}

/// Interleaves `vectors`: the result has the first elements of all vectors,
/// then all second elements, and so on. The number of vectors is a power of
/// two.
static Value interleaveAll(OpBuilder &b, Location loc,
                           ArrayRef<Value> vectors) {
  if (vectors.size() == 1)
    return vectors.front();
  SmallVector<Value> halves[2];
  for (auto [i, vector] : llvm::enumerate(vectors))
    halves[i % 2].push_back(vector);
  Value even = interleaveAll(b, loc, halves[0]),
        odd = interleaveAll(b, loc, halves[1]);
  int64_t count = cast<VectorType>(even.getType()).getNumElements();
  SmallVector<int64_t> places;
  for (int64_t i = 0; i < count; ++i)
    places.append({i, count + i});
  return vector::ShuffleOp::create(b, loc, even, odd, places);
}

//===----------------------------------------------------------------------===//
// Elements of groups
//===----------------------------------------------------------------------===//

/// Returns true if the elements of a row of `memref` are not contiguous, so
/// that each access moves one element. This holds for rows with one element per
/// group that have a stride, and for tensors that are stored in tiles.
static bool isSpread(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  return type.getStridesAndOffset().first.back() != 1 || isSwizzled(memref);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {
/// Loads the pack of `load` at `start`. Elements are zero where `predicate` is
/// false.
class PackReader {
public:
  PackReader(OpBuilder &b, const RowLayout &layout, LoadOp load,
             Value predicate, Value start)
      : b(b), loc(load.getLoc()), layout(layout),
        access(load.getAccesses().front()), predicate(predicate), start(start) {
    Type element = cast<MemRefType>(access.memref.getType()).getElementType();
    pack = layout.packType(load.getType(), element);
  }

  Value read() {
    if (access.member)
      return access.getMovedMember() ? readMemberOfGroups() : readMember();
    SmallVector<Value> indices = buildIndices(b, loc, access, start);
    return isSpread(access.memref) ? readElement(indices) : read(pack, indices);
  }

private:
  Value read(Type type, ValueRange indices) {
    return readMemory(b, loc, layout, predicate, type, access.memref, indices,
                      firstOf(access));
  }

  /// Loads the element of each group that belongs to the member with a separate
  /// access.
  Value readMember() {
    SmallVector<Value> elements;
    for (int64_t i = 0, count = pack.getNumElements(); i < count; ++i)
      elements.push_back(
          read(pack.getElementType(),
               buildMemberIndices(b, loc, access, start, i, access.member)));
    auto type = VectorType::get(pack.getShape(), elements.front().getType());
    return vector::FromElementsOp::create(b, loc, type, elements);
  }

  /// Loads whole groups with one access, and extracts the element of each group
  /// that belongs to the member.
  Value readMemberOfGroups() {
    int64_t size = access.getProduct().getGroup().getSize();
    int64_t count = pack.getNumElements();
    Value groups = read(VectorType::get({count * size}, pack.getElementType()),
                        buildMemberIndices(b, loc, access, start, 0, Value()));
    SmallVector<int64_t> places;
    for (int64_t i = 0; i < count; ++i)
      places.push_back(i * size + *access.getMovedMember());
    return vector::ShuffleOp::create(b, loc, groups, groups, places);
  }

  /// Loads the pack of a row whose elements are not contiguous (isSpread). Such
  /// a pack has one element.
  Value readElement(ValueRange indices) {
    Value element = read(pack.getElementType(), indices);
    auto type = VectorType::get(pack.getShape(), element.getType());
    return vector::BroadcastOp::create(b, loc, type, element);
  }

  OpBuilder &b;
  Location loc;
  const RowLayout &layout;
  MemoryAccess access;
  Value predicate;
  VectorType pack;
  Value start;
};
} // namespace

//===----------------------------------------------------------------------===//
// The ops
//===----------------------------------------------------------------------===//

/// Loads the pack whose position `positionIn` returns. An absent optional
/// tensor reads as zero, not as the `else` value. That value applies only where
/// the predicate of the load itself is false.
static Value loadPack(OpBuilder &b, const RowLayout &layout, LoadOp load,
                      PackPositionFn positionIn) {
  Location loc = load.getLoc();
  Value source = load.getSource();
  Value predicate = accessPredicate(b, loc, load.getPredicate(), source);
  PackPosition place = positionIn(source);
  predicate = both(b, loc, predicate, place.exists);
  Value pack = PackReader(b, layout, load, predicate, place.start).read();
  pack = widen(b, loc, source, load.getType(), pack, predicate);
  if (!load.getOther())
    return pack;
  Value other =
      vector::BroadcastOp::create(b, loc, pack.getType(), load.getOther());
  return arith::SelectOp::create(b, loc, load.getPredicate(), pack, other);
}

namespace {
/// Loads one pack of the result of mlafix.load_into, which reads a row in
/// memory into a longer row.
class ShiftedReader {
public:
  ShiftedReader(OpBuilder &b, const RowLayout &layout, LoadIntoOp load,
                const PackPosition &place)
      : b(b), loc(load.getLoc()), layout(layout), load(load), place(place),
        access(load.getAccesses().front()),
        size(access.slice ? access.slice->end - access.slice->begin
                          : access.getRowDim().getSize()) {}

  Value read();

private:
  Value readAt(Value start, Type type);

  OpBuilder &b;
  Location loc;
  const RowLayout &layout;
  LoadIntoOp load;
  PackPosition place;
  MemoryAccess access;
  int64_t size;
};
} // namespace

/// Returns true if reads past the end of the row in memory start again at its
/// first element. This holds for slices, and for whole rows whose dim is not
/// declared with a largest size.
static bool isRepeated(const MemoryAccess &access) {
  if (access.slice)
    return true;
  unsigned argument = access.getArgNumber();
  KernelOp kernel = getKernelOf(access.getArgument());
  ArrayAttr dims = kernel.getArgDims(argument);
  return !kernel.getMostOf(cast<StringAttr>(dims[dims.size() - 1]).getValue());
}

/// Loads from position `start` of the longer row: one element if `type` is a
/// scalar type, or a pack if `type` is a vector type.
Value ShiftedReader::readAt(Value start, Type type) {
  IndexBuilder x(b, loc);
  int64_t first = load.getFirst(), each = load.getEach();
  Value predicate =
      both(b, loc, accessPredicate(b, loc, load.getPredicate(), access.memref),
           place.exists);
  Value element = start;
  if (first > 0)
    predicate =
        both(b, loc, predicate,
             x.compare(arith::CmpIPredicate::uge, start, x.constant(first)));
  if (first)
    element = arith::SubIOp::create(b, loc, start, x.constant(first));
  if (each > 1)
    element = x.div(element, x.constant(each));
  DimAttr dim = access.getRowDim();
  bool endsWithDim = dim.isBounded() && !access.slice;
  bool isLonger =
      endsWithDim || getTileDim(load.getType()).getSize() - first > size * each;
  if (isLonger && isRepeated(access))
    element = x.rem(element, x.constant(size));
  else if (isLonger)
    predicate = both(
        b, loc, predicate,
        x.ult(element, endsWithDim ? buildRowSize(b, loc, layout.kernel, dim)
                                   : x.constant(size)));
  if (firstOf(access))
    element = x.add(element, x.constant(firstOf(access)));
  SmallVector<Value> indices(access.indices);
  indices.push_back(element);
  Value value = readMemory(b, loc, layout, predicate, type, access.memref,
                           indices, firstOf(access));
  return widen(b, loc, access.memref, load.getType(), value, predicate);
}

Value ShiftedReader::read() {
  VectorType result = layout.packType(load.getType());
  Type element = access.getElementType();
  int64_t count = result.getNumElements(), each = load.getEach();
  if (readsPacks(load, count)) {
    Value pack = readAt(place.start, VectorType::get({count / each}, element));
    SmallVector<int64_t> places;
    for (int64_t i = 0; i < count; ++i)
      places.push_back(i / each);
    return each == 1 ? pack
                     : vector::ShuffleOp::create(b, loc, pack, pack, places);
  }
  IndexBuilder x(b, loc);
  SmallVector<Value> elements;
  for (int64_t i = 0; i < count; ++i)
    elements.push_back(readAt(x.add(place.start, x.constant(i)), element));
  return vector::FromElementsOp::create(b, loc, result, elements);
}

/// Returns the condition under which a store with the predicate `predicate`
/// (null: always true) stores the pack at `place`. Returns null if the pack is
/// always stored.
static Value wherePackIsStored(OpBuilder &b, Location loc, Value predicate,
                               const PackPosition &place) {
  return both(b, loc, both(b, loc, predicate, place.exists), place.stores);
}

/// Stores `value` at `indices` and the following elements, where `predicate`
/// (null: always true) holds.
static void writePack(OpBuilder &b, Location loc, const RowLayout &layout,
                      Value predicate, Value value, Value target,
                      ValueRange indices, int64_t first = 0) {
  auto type = cast<VectorType>(value.getType());
  writeIf(b, loc, predicate, [&](OpBuilder &then) {
    if (isSpread(target))
      memref::StoreOp::create(then, loc,
                              vector::ExtractOp::create(then, loc, value, 0),
                              target, indices, layout.isStreamed(target));
    else
      vector::StoreOp::create(
          then, loc, value, target, indices, layout.isStreamed(target),
          llvm::MaybeAlign(layout.alignmentOf(target, type, first)));
  });
}

static void storePack(OpBuilder &b, const RowLayout &layout, StoreOp store,
                      Value pack, PackPositionFn positionIn) {
  Location loc = store.getLoc();
  Value target = store.getTarget();
  MemoryAccess access = store.getAccesses().front();
  Value predicate = accessPredicate(b, loc, store.getPredicate(), target);
  PackPosition place = positionIn(target);
  if (access.member)
    return writeIf(b, loc, wherePackIsStored(b, loc, predicate, place),
                   [&](OpBuilder &then) {
                     writeMember(then, loc, access, pack, place.start);
                   });
  Value value = narrow(b, loc, target, pack);
  SmallVector<Value> indices = buildIndices(b, loc, access, place.start);
  writePack(b, loc, layout, wherePackIsStored(b, loc, predicate, place), value,
            target, indices, firstOf(access));
}

/// Stores `packs`, one pack of each member of a row along a product.
static void storeMembers(OpBuilder &b, const RowLayout &layout,
                         StoreMembersOp store, ValueRange packs,
                         PackPositionFn positionIn) {
  Location loc = store.getLoc();
  Value target = store.getTarget();
  Value predicate = accessPredicate(b, loc, store.getPredicate(), target);
  PackPosition place = positionIn(target);
  // One instruction narrows two elements and puts them next to each other. So
  // elements are interleaved before they are narrowed: the two elements of an
  // instruction are then neighbours in memory, too.
  Value value =
      narrow(b, loc, target, interleaveAll(b, loc, llvm::to_vector(packs)));
  SmallVector<Value> indices = buildMemberIndices(
      b, loc, store.getAccesses().front(), place.start, 0, Value());
  writePack(b, loc, layout, wherePackIsStored(b, loc, predicate, place), value,
            target, indices);
}

/// Builds the pack of the element numbers `start`, `start` + 1, ….
static Value iotaPack(OpBuilder &b, VectorType type, IotaOp iota, Value start) {
  Location loc = iota.getLoc();
  SmallVector<int32_t> steps =
      llvm::to_vector(llvm::seq<int32_t>(0, type.getNumElements()));
  Value step = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, ArrayRef(steps)));
  Value first = arith::IndexCastOp::create(b, loc, b.getI32Type(), start);
  Value firsts = vector::BroadcastOp::create(b, loc, type, first);
  return arith::AddIOp::create(b, loc, firsts, step);
}

/// Returns the integer that all elements of a row are equal to. Returns nullopt
/// if the row is not a uniform constant.
static std::optional<int64_t> getConstantOfRow(Value row) {
  if (auto splat = row.getDefiningOp<SplatOp>())
    row = splat->getOperand(0);
  APInt constant;
  if (!matchPattern(row, m_ConstantInt(&constant)))
    return std::nullopt;
  return constant.getSExtValue();
}

/// Lowers a comparison of element numbers with a constant that lies on a
/// boundary between packs. All elements of a pack are then on one side of the
/// constant, so only the first element number is compared. Returns null for
/// other comparisons.
static Value compareIndices(OpBuilder &b, VectorType type, arith::CmpIOp op,
                            ValueRange operands) {
  using P = arith::CmpIPredicate;
  std::optional<int64_t> bound = getConstantOfRow(op.getRhs());
  if (!op.getLhs().getDefiningOp<IotaOp>() || !bound)
    return Value();
  P predicate = op.getPredicate();
  if (llvm::is_contained({P::sle, P::ule, P::sgt, P::ugt}, predicate))
    ++*bound;
  else if (!llvm::is_contained({P::slt, P::ult, P::sge, P::uge}, predicate))
    return Value();
  if (*bound % type.getNumElements() != 0)
    return Value();
  Location loc = op.getLoc();
  auto getFirst = [&](Value pack) -> Value {
    return vector::ExtractOp::create(b, loc, pack, 0);
  };
  Value holds = arith::CmpIOp::create(b, loc, predicate, getFirst(operands[0]),
                                      getFirst(operands[1]));
  return vector::BroadcastOp::create(b, loc, type, holds);
}

Value mlafix::doToPack(OpBuilder &b, const RowLayout &layout, Operation *op,
                       ValueRange operands, PackPositionFn positionIn) {
  Location loc = op->getLoc();
  if (auto load = dyn_cast<LoadOp>(op))
    return loadPack(b, layout, load, positionIn);
  if (auto load = dyn_cast<LoadIntoOp>(op))
    return ShiftedReader(b, layout, load, positionIn(load.getSource())).read();
  if (auto store = dyn_cast<StoreOp>(op)) {
    unsigned row = store.getValueMutable().getOperandNumber();
    storePack(b, layout, store, operands[row], positionIn);
    return {};
  }
  if (auto store = dyn_cast<StoreMembersOp>(op)) {
    storeMembers(b, layout, store,
                 operands.take_front(store.getValues().size()), positionIn);
    return {};
  }
  VectorType type = layout.packType(op->getResult(0).getType());
  if (auto iota = dyn_cast<IotaOp>(op))
    return iotaPack(b, type, iota, positionIn({}).start);
  if (isa<SplatOp>(op))
    return vector::BroadcastOp::create(b, loc, type, operands.front());
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto splat = cast<SplatElementsAttr>(constant.getValue());
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, splat.getSplatValue<Attribute>()));
  }
  if (auto comparison = dyn_cast<arith::CmpIOp>(op))
    if (Value holds = compareIndices(b, type, comparison, operands))
      return holds;
  OperationState state(loc, op->getName(), operands, {type}, op->getAttrs());
  return b.create(state)->getResult(0);
}
