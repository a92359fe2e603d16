//===- FloatsToBits.cpp - turns copied floats into integers ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Mlafix.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-floats-to-bits"

namespace mlafix {
#define GEN_PASS_DEF_FLOATSTOBITSPASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// True if `op` only copies values, without arithmetic on them.
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

/// Returns the integer type for the bits of a float, in the shape of `type`.
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

/// Erases bitcasts between equal types.
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
  BitReplacement(LLVM::LLVMFuncOp function, unsigned width)
      : function(function), width(width) {}

  LogicalResult run();

private:
  bool isReplaced(Type type) const {
    auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
    return element && element.getWidth() <= width;
  }
  bool touches(Operation *op) const {
    auto isHere = [&](Type type) { return isReplaced(type); };
    return llvm::any_of(op->getOperandTypes(), isHere) ||
           llvm::any_of(op->getResultTypes(), isHere);
  }
  void isolate(Operation *conversion);
  void replace(Operation *op);

  LLVM::LLVMFuncOp function;
  unsigned width;
  /// Ops that keep their float types: conversions, and the bitcasts around
  /// them.
  llvm::SmallPtrSet<Operation *, 16> kept;
};
} // namespace

/// Inserts bitcasts around a conversion, so that no other op sees its narrow
/// float type.
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
  WalkResult walk = function.getBody().walk([&](Operation *op) -> WalkResult {
    if (!touches(op))
      return WalkResult::advance();
    // Conversions from and to f16 stay: LLVM supports f16 on all targets,
    // though it emulates f16 on some.
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
    return op->emitError()
           << "expected only moves and conversions of values of "
           << getDTypeName(getElementTypeOrSelf(type)) << ", got '"
           << op->getName() << "'; compute in f32";
  });
  if (walk.wasInterrupted())
    return failure();
  LDBG() << function.getSymName() << ": " << conversions.size()
         << " conversions stay";
  llvm::for_each(conversions, [&](Operation *op) { isolate(op); });
  function.getBody().walk([&](Operation *op) {
    if (!kept.contains(op))
      moves.push_back(op);
  });
  llvm::for_each(moves, [&](Operation *op) { replace(op); });
  eraseIdentityCasts(function);
  return success();
}

namespace {
class FloatsToBitsPass
    : public mlafix::impl::FloatsToBitsPassBase<FloatsToBitsPass> {
public:
  using FloatsToBitsPassBase::FloatsToBitsPassBase;

  void runOnOperation() override {
    if (failed(BitReplacement(getOperation(), width).run()))
      return signalPassFailure();
  }
};
} // namespace
