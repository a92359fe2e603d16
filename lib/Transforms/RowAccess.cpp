//===- RowAccess.cpp - moving and combining parts of a row -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/RowAccess.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlafix;

Value mlafix::both(OpBuilder &b, Location loc, Value p, Value q) {
  if (!p || !q)
    return p ? p : q;
  return arith::AndIOp::create(b, loc, p, q);
}

Value mlafix::accessPredicate(OpBuilder &b, Location loc, Value predicate,
                              Value memref) {
  BlockArgument argument = getKernelArgument(memref);
  if (!argument || !cast<KernelOp>(argument.getOwner()->getParentOp())
                        .isArgOptional(argument.getArgNumber()))
    return predicate;
  return both(b, loc, PresentOp::create(b, loc, memref), predicate);
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

Value mlafix::narrow(OpBuilder &b, Location loc, Value value, Type element) {
  Type type = withElement(value.getType(), element);
  if (type == value.getType())
    return value;
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

// On a GPU a predicated load is a masked one with a uniform mask: it turns into
// a branch around the load only after all optimisation, whereas the arithmetic
// on its result would be pulled into a branch made here, and wait there for the
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
  if (layout.context.isGPU) {
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

Value mlafix::splatPack(OpBuilder &b, const RowLayout &layout,
                        arith::ConstantOp constant) {
  auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
  if (!isRowTile(constant.getType()) || !splat)
    return {};
  auto type = layout.packType(constant.getType());
  return arith::ConstantOp::create(
      b, constant.getLoc(),
      DenseElementsAttr::get(type, splat.getSplatValue<Attribute>()));
}

Value mlafix::applyToPack(OpBuilder &b, const RowLayout &layout, Operation *op,
                          ValueRange operands) {
  OperationState state(op->getLoc(), op->getName(), operands,
                       {layout.packType(op->getResult(0).getType())},
                       op->getAttrs());
  return b.create(state)->getResult(0);
}
