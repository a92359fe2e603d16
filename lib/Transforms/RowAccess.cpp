//===- RowAccess.cpp - moving and combining parts of a row -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/RowAccess.h"
#include "dialect/RowProgram.h"
#include "lib/Transforms/Presence.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlafix;

RowLayout::RowLayout(KernelOp kernel)
    : layout(kernel.getLayoutAttr()), guards(kernel.getGuardsAttr()),
      isGPU(mlafix::isGPU(getTarget(kernel))) {
  kernel.walk([&](RowOp row) {
    lane = row.getLane();
    members = row.getMembers();
  });
}

static bool isElementwise(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1;
}

LogicalResult mlafix::verifyRowOps(KernelOp kernel) {
  if (kernel.getGrid())
    return kernel.emitError() << "expected a kernel without a grid, got one "
                                 "whose grid is still to become threads or "
                                 "loops";
  WalkResult walk = kernel.walk([&](Operation *op) {
    auto isTile = [](Type type) { return isRowTile(type); };
    if (llvm::none_of(op->getOperandTypes(), isTile) &&
        llvm::none_of(op->getResultTypes(), isTile))
      return WalkResult::advance();
    if (isPackwise(op) ||
        isa<ReduceOp, MergeLoopOp, YieldOp, scf::ForOp, scf::IfOp, scf::YieldOp,
            scf::WhileOp, scf::ConditionOp>(op))
      return WalkResult::advance();
    if (isa<arith::ConstantOp>(op)) {
      op->emitError() << "expected a constant row whose elements are all one "
                         "value, got different elements";
      return WalkResult::interrupt();
    }
    if (isElementwise(op)) {
      op->emitError()
          << "expected rows of f32, i1, i8, i32 or i64, got a row of index";
      return WalkResult::interrupt();
    }
    op->emitError()
        << "expected an elementwise op with one result, a load, a store, a "
           "reduction, a splat or control flow on a row, got '"
        << op->getName() << "'";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

Value mlafix::both(OpBuilder &b, Location loc, Value p, Value q) {
  if (!p || !q)
    return p ? p : q;
  return arith::AndIOp::create(b, loc, p, q);
}

Value mlafix::accessPredicate(OpBuilder &b, Location loc, Value predicate,
                              Value memref) {
  return both(b, loc, buildPresent(b, loc, memref), predicate);
}

Value mlafix::statePredicate(OpBuilder &b, LoadStateOp load) {
  Location loc = load.getLoc();
  return accessPredicate(
      b, loc, accessPredicate(b, loc, load.getPredicate(), load.getOut()),
      load.getLse());
}

/// `type`, a scalar or a vector, with another element.
static Type withElement(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
}

/// Memory knows unsigned integers, arith does not; the bits are the same.
static Type dropSign(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isUnsignedInteger()
             ? withElement(type, getComputeType(element))
             : type;
}

static Value castSign(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return UnrealizedConversionCastOp::create(b, loc, type, value).getResult(0);
}

static Value dropSign(OpBuilder &b, Location loc, Value value) {
  return castSign(b, loc, value, dropSign(value.getType()));
}

Value mlafix::widen(OpBuilder &b, LoadOp load, Value value) {
  Location loc = load.getLoc();
  Type result = getElementTypeOrSelf(load.getType());
  Type type = withElement(value.getType(), result);
  if (type == value.getType())
    return value;
  if (isa<FloatType>(result))
    return arith::ExtFOp::create(b, loc, type, value);
  Type element = cast<MemRefType>(load.getSource().getType()).getElementType();
  if (element.isUnsignedInteger())
    return arith::ExtUIOp::create(b, loc, type, value);
  return arith::ExtSIOp::create(b, loc, type, value);
}

/// `value` within the finite numbers of f8E4M3FN if it is converted from
/// integers. A truncation of such a conversion becomes one conversion upstream,
/// and of a constant beyond that range it folds to NaN, where stores saturate.
static Value saturate(OpBuilder &b, Location loc, Value value) {
  if (!isa_and_nonnull<arith::SIToFPOp, arith::UIToFPOp>(value.getDefiningOp()))
    return value;
  auto constant = [&](double number) -> Value {
    TypedAttr attr = b.getF32FloatAttr(number);
    if (auto shaped = dyn_cast<ShapedType>(value.getType()))
      attr = DenseElementsAttr::get(shaped, Attribute(attr));
    return arith::ConstantOp::create(b, loc, attr);
  };
  value = arith::MinNumFOp::create(b, loc, value, constant(448));
  return arith::MaxNumFOp::create(b, loc, value, constant(-448));
}

Value mlafix::narrow(OpBuilder &b, Location loc, Value value, Type element) {
  Type type = withElement(value.getType(), element);
  if (type == value.getType())
    return value;
  if (isa<Float8E4M3FNType>(element))
    value = saturate(b, loc, value);
  if (isa<FloatType>(element))
    return arith::TruncFOp::create(b, loc, type, value);
  unsigned from = getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth(),
           to = element.getIntOrFloatBitWidth();
  if (from > to)
    value = arith::TruncIOp::create(b, loc, dropSign(type), value);
  if (from < to)
    value = arith::ExtSIOp::create(b, loc, dropSign(type), value);
  return castSign(b, loc, value, type);
}

/// Zero of a type in memory.
static Value zeroInMemory(OpBuilder &b, Location loc, Type type) {
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(dropSign(type)));
  return castSign(b, loc, zero, type);
}

// On a GPU a predicated load is a masked load with a uniform mask: it becomes a
// branch around the load only after all optimisation, whereas the arithmetic on
// its result would be pulled into a branch made here, and wait there for the
// load while others have yet to be issued.
Value mlafix::readMemory(OpBuilder &b, Location loc, const RowLayout &layout,
                         Value predicate, Type type, Value source,
                         ValueRange indices) {
  auto vector = dyn_cast<VectorType>(type);
  llvm::MaybeAlign alignment(vector ? layout.alignmentOf(source)
                                    : getDTypeBytes(type));
  auto read = [&](OpBuilder &b) -> Value {
    if (!vector)
      return dropSign(b, loc, memref::LoadOp::create(b, loc, source, indices));
    return dropSign(b, loc,
                    vector::LoadOp::create(b, loc, type, source, indices,
                                           /*nontemporal=*/false, alignment));
  };
  if (!predicate)
    return read(b);
  if (layout.isGPU) {
    VectorType pack = vector ? vector : VectorType::get({1}, type);
    Value mask = vector::BroadcastOp::create(
        b, loc, VectorType::get(pack.getShape(), b.getI1Type()), predicate);
    Value zero = zeroInMemory(b, loc, pack);
    Value value =
        dropSign(b, loc,
                 vector::MaskedLoadOp::create(b, loc, pack, source, indices,
                                              mask, zero, alignment));
    return vector ? value : Value(vector::ExtractOp::create(b, loc, value, 0));
  }
  Type signless = dropSign(type);
  auto guarded = scf::IfOp::create(b, loc, TypeRange{signless}, predicate,
                                   /*withElseRegion=*/true);
  OpBuilder then = guarded.getThenBodyBuilder(),
            otherwise = guarded.getElseBodyBuilder();
  scf::YieldOp::create(then, loc, read(then));
  Value zero = zeroInMemory(otherwise, loc, signless);
  scf::YieldOp::create(otherwise, loc, zero);
  return guarded.getResult(0);
}

void mlafix::writeIf(OpBuilder &b, Location loc, Value predicate,
                     function_ref<void(OpBuilder &)> write) {
  if (!predicate)
    return write(b);
  auto guarded = scf::IfOp::create(b, loc, predicate, /*withElseRegion=*/false);
  OpBuilder then = guarded.getThenBodyBuilder();
  write(then);
}

Value mlafix::combine(OpBuilder &b, Location loc, ReduceKind kind, Value x,
                      Value y) {
  bool isFloat = isa<FloatType>(x.getType());
  switch (kind) {
  case ReduceKind::add:
    return isFloat ? Value(arith::AddFOp::create(b, loc, x, y))
                   : Value(arith::AddIOp::create(b, loc, x, y));
  case ReduceKind::max:
    return isFloat ? Value(arith::MaximumFOp::create(b, loc, x, y))
                   : Value(arith::MaxSIOp::create(b, loc, x, y));
  case ReduceKind::min:
    return isFloat ? Value(arith::MinimumFOp::create(b, loc, x, y))
                   : Value(arith::MinSIOp::create(b, loc, x, y));
  }
  llvm_unreachable("all kinds are handled");
}

Value mlafix::reduceTree(OpBuilder &b, Location loc, ReduceKind kind,
                         SmallVector<Value> values) {
  while (values.size() > 1) {
    SmallVector<Value> next;
    for (size_t i = 0; i < values.size(); i += 2)
      next.push_back(i + 1 < values.size()
                         ? combine(b, loc, kind, values[i], values[i + 1])
                         : values[i]);
    values = std::move(next);
  }
  return values.front();
}

static SmallVector<Value> withStart(ValueRange indices, Value start) {
  SmallVector<Value> all(indices);
  all.push_back(start);
  return all;
}

// An omitted tensor reads as zero; `else` is for a false predicate of the
// kernel's own.
static Value loadPack(OpBuilder &b, const RowLayout &layout, LoadOp load,
                      PackPositionFn positionIn) {
  Location loc = load.getLoc();
  Value source = load.getSource();
  Value predicate = accessPredicate(b, loc, load.getPredicate(), source);
  auto [start, exists] = positionIn(source);
  Type element = cast<MemRefType>(source.getType()).getElementType();
  Value pack = widen(b, load,
                     readMemory(b, loc, layout, both(b, loc, predicate, exists),
                                layout.packType(load.getType(), element),
                                source, withStart(load.getIndices(), start)));
  if (!load.getOther())
    return pack;
  Value other =
      vector::BroadcastOp::create(b, loc, pack.getType(), load.getOther());
  return arith::SelectOp::create(b, loc, load.getPredicate(), pack, other);
}

static void storePack(OpBuilder &b, const RowLayout &layout, StoreOp store,
                      Value pack, PackPositionFn positionIn) {
  Location loc = store.getLoc();
  Value target = store.getTarget();
  Value predicate = accessPredicate(b, loc, store.getPredicate(), target);
  auto [start, exists] = positionIn(target);
  Value value =
      narrow(b, loc, pack, cast<MemRefType>(target.getType()).getElementType());
  SmallVector<Value> indices = withStart(store.getIndices(), start);
  writeIf(b, loc, both(b, loc, predicate, exists), [&](OpBuilder &then) {
    vector::StoreOp::create(then, loc, value, target, indices,
                            layout.isStreamed(target),
                            llvm::MaybeAlign(layout.alignmentOf(target)));
  });
}

bool mlafix::isPackwise(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  // An index has no size in memory, so a pack cannot hold it.
  return isa<LoadOp, StoreOp, SplatOp>(op) ||
         (isElementwise(op) &&
          !getElementTypeOrSelf(op->getResult(0).getType()).isIndex());
}

Value mlafix::doToPack(OpBuilder &b, const RowLayout &layout, Operation *op,
                       ValueRange operands, PackPositionFn positionIn) {
  Location loc = op->getLoc();
  if (auto load = dyn_cast<LoadOp>(op))
    return loadPack(b, layout, load, positionIn);
  if (auto store = dyn_cast<StoreOp>(op)) {
    unsigned row = store.getValueMutable().getOperandNumber();
    storePack(b, layout, store, operands[row], positionIn);
    return {};
  }
  VectorType type = layout.packType(op->getResult(0).getType());
  if (isa<SplatOp>(op))
    return vector::BroadcastOp::create(b, loc, type, operands.front());
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto splat = cast<SplatElementsAttr>(constant.getValue());
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, splat.getSplatValue<Attribute>()));
  }
  OperationState state(loc, op->getName(), operands, {type}, op->getAttrs());
  return b.create(state)->getResult(0);
}
