//===- StoredFloats.cpp - floats that only memory holds -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/StoredFloats.h"
#include "dialect/Mlafix.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlafix;

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

static bool isNarrow(Type type) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  return element && element.getWidth() < 32;
}

/// f32 in the shape of `type`.
static Type getWide(Type type) {
  Type f32 = Float32Type::get(type.getContext());
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped ? Type(shaped.clone(f32)) : f32;
}

void mlafix::splitConversions(LLVM::LLVMFuncOp function) {
  SmallVector<Operation *> conversions;
  function.walk([&](Operation *op) {
    if (isa<CastOpInterface>(op) && op->getNumOperands() == 1 &&
        isa<arith::ArithDialect>(op->getDialect()) &&
        !isa<arith::BitcastOp>(op))
      conversions.push_back(op);
  });
  for (Operation *op : conversions) {
    Value from = op->getOperand(0), to = op->getResult(0);
    bool ends = isa<arith::TruncFOp>(op), begins = isa<arith::ExtFOp>(op);
    OpBuilder b(op);
    if (isNarrow(from.getType()) && !begins)
      op->setOperand(0, arith::ExtFOp::create(b, op->getLoc(),
                                              getWide(from.getType()), from));
    if (isNarrow(to.getType()) && !ends) {
      Type type = to.getType();
      to.setType(getWide(type));
      b.setInsertionPointAfter(op);
      auto narrow = arith::TruncFOp::create(b, op->getLoc(), type, to);
      to.replaceAllUsesExcept(narrow, narrow);
    }
  }
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

/// Whether `op` leaves the bits of all its values as they are.
static bool isMove(Operation *op) {
  return isa<arith::ConstantOp, arith::SelectOp, arith::BitcastOp, scf::ForOp,
             scf::IfOp, scf::WhileOp, scf::ConditionOp, scf::YieldOp,
             vector::BroadcastOp, vector::ExtractOp, vector::InsertOp,
             vector::ShuffleOp, vector::BitCastOp, vector::ShapeCastOp,
             vector::FromElementsOp, vector::ToElementsOp,
             vector::ExtractStridedSliceOp, vector::InsertStridedSliceOp,
             LLVM::LoadOp, LLVM::StoreOp, LLVM::MaskedLoadOp, ub::PoisonOp,
             UnrealizedConversionCastOp>(op);
}

/// The integer that holds the bits of a float, in the shape of `type`.
static Type getBits(Type type) {
  auto element = cast<FloatType>(getElementTypeOrSelf(type));
  Type bits = IntegerType::get(type.getContext(), element.getWidth());
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped ? Type(shaped.clone(bits)) : bits;
}

static TypedAttr getBits(TypedAttr value) {
  Type type = getElementTypeOrSelf(getBits(value.getType()));
  if (auto element = dyn_cast<FloatAttr>(value))
    return IntegerAttr::get(type, element.getValue().bitcastToAPInt());
  return cast<DenseElementsAttr>(value).bitcast(type);
}

/// A cast of bits to the same bits is none.
static void eraseIdentityCasts(LLVM::LLVMFuncOp function) {
  function.walk([](Operation *op) {
    if (!isa<arith::BitcastOp, vector::BitCastOp, UnrealizedConversionCastOp>(
            op) ||
        op->getOperandTypes() != op->getResultTypes())
      return;
    op->replaceAllUsesWith(op->getOperands());
    op->erase();
  });
}

namespace {
class BitReplacement {
public:
  BitReplacement(LLVM::LLVMFuncOp function,
                 function_ref<bool(FloatType)> isStored)
      : function(function), isStored(isStored) {}

  LogicalResult run();

private:
  bool isReplaced(Type type) const {
    auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
    return element && isStored(element);
  }
  bool touches(Operation *op) const {
    auto isHere = [&](Type type) { return isReplaced(type); };
    return llvm::any_of(op->getOperandTypes(), isHere) ||
           llvm::any_of(op->getResultTypes(), isHere);
  }
  void isolate(Operation *conversion);
  void replace(Operation *op);

  LLVM::LLVMFuncOp function;
  function_ref<bool(FloatType)> isStored;
  /// What goes on with floats: conversions, and casts to and from their bits.
  llvm::SmallPtrSet<Operation *, 16> kept;
};
} // namespace

/// Puts casts from and to bits around a conversion, which alone sees the float.
void BitReplacement::isolate(Operation *conversion) {
  Location loc = conversion->getLoc();
  OpBuilder b(conversion);
  Value from = conversion->getOperand(0), to = conversion->getResult(0);
  auto cast = [&](Type type, Value value) {
    return UnrealizedConversionCastOp::create(b, loc, type, value).getResult(0);
  };
  kept.insert(conversion);
  if (isReplaced(from.getType())) {
    Value bits = cast(getBits(from.getType()), from);
    Value seen = arith::BitcastOp::create(b, loc, from.getType(), bits);
    kept.insert(seen.getDefiningOp());
    conversion->setOperand(0, seen);
  }
  if (isReplaced(to.getType())) {
    b.setInsertionPointAfter(conversion);
    Value bits = arith::BitcastOp::create(b, loc, getBits(to.getType()), to);
    kept.insert(bits.getDefiningOp());
    to.replaceAllUsesExcept(cast(to.getType(), bits), bits.getDefiningOp());
  }
}

void BitReplacement::replace(Operation *op) {
  auto retype = [&](Value value) {
    if (isReplaced(value.getType()))
      value.setType(getBits(value.getType()));
  };
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    if (isReplaced(constant.getType()))
      constant.setValueAttr(getBits(constant.getValue()));
  if (auto address = dyn_cast<LLVM::GEPOp>(op))
    if (isReplaced(address.getElemType()))
      address.setElemType(getBits(address.getElemType()));
  llvm::for_each(op->getResults(), retype);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      llvm::for_each(block.getArguments(), retype);
}

LogicalResult BitReplacement::run() {
  SmallVector<Operation *> conversions, moves;
  WalkResult walk = function.getBody().walk([&](Operation *op) {
    if (!touches(op))
      return WalkResult::advance();
    // LLVM has f16 for all targets, if not always instructions for it.
    auto isHalf = [](Type type) { return getElementTypeOrSelf(type).isF16(); };
    if (isa<arith::ExtFOp, arith::TruncFOp>(op) &&
        (isHalf(op->getOperand(0).getType()) ||
         isHalf(op->getResult(0).getType()))) {
      conversions.push_back(op);
      return WalkResult::advance();
    }
    if (isMove(op))
      return WalkResult::advance();
    auto types =
        llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes());
    Type type = *llvm::find_if(types, [&](Type t) { return isReplaced(t); });
    op->emitError() << "expected values of "
                    << getDTypeName(getElementTypeOrSelf(type))
                    << " to be moved and converted alone, got '"
                    << op->getName() << "' of them";
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  llvm::for_each(conversions, [&](Operation *op) { isolate(op); });
  function.getBody().walk([&](Operation *op) {
    if (!kept.contains(op))
      moves.push_back(op);
  });
  llvm::for_each(moves, [&](Operation *op) { replace(op); });
  eraseIdentityCasts(function);
  return success();
}

LogicalResult
mlafix::replaceFloatsByBits(LLVM::LLVMFuncOp function,
                            function_ref<bool(FloatType)> isStored) {
  return BitReplacement(function, isStored).run();
}
