//===- MlafixThread.cpp - the dialect of one thread's program -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/MlafixThread.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlafix;

#include "dialect/MlafixThreadDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/MlafixThreadAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/MlafixThreadOps.cpp.inc"

void MlafixThreadDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/MlafixThreadAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/MlafixThreadOps.cpp.inc"
      >();
}

void RowOp::build(OpBuilder &b, OperationState &state, Value lane, Value mask,
                  ValueRange groups) {
  auto add = [&](Value value) -> int32_t {
    if (value)
      state.addOperands(value);
    return value ? 1 : 0;
  };
  int32_t lanes = add(lane), masks = add(mask);
  state.addOperands(groups);
  state.getOrAddProperties<Properties>().operandSegmentSizes = {
      lanes, masks, static_cast<int32_t>(groups.size())};
  ensureTerminator(*state.addRegion(), b, state.location);
}

LogicalResult RowOp::verify() {
  constexpr size_t kGroupValues = 4;
  size_t groups = getGroups().size();
  if (groups != 0 && groups != kGroupValues)
    return emitOpError() << "expected no group values or " << kGroupValues
                         << " (group, number of groups, threads of a group, "
                            "this thread), got "
                         << groups;
  if (!getOperation()->getParentOfType<KernelOp>())
    return emitOpError() << "expected a mlafix.kernel around it, got none";
  return success();
}

LogicalResult AwaitPushesOp::verify() {
  if (!getMemref().getDefiningOp<memref::AllocaOp>())
    return emitOpError() << "expected memory that a memref.alloca allocates, "
                            "got other memory";
  if (getOperation()->getParentOfType<LoopLikeOpInterface>())
    return emitOpError() << "expected no loop around it, since each element is "
                            "pushed once, got one";
  return success();
}

LogicalResult PredicatedLoadOp::verify() {
  Type type = getValue().getType();
  auto vector = dyn_cast<VectorType>(type);
  Type element = getElementTypeOrSelf(type);
  int64_t bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  if (vector)
    bits *= vector.getNumElements();
  if (bits == 32 || bits == 64 || bits == 128 || bits == 256)
    return success();
  return emitOpError() << "expected a value of 1, 2, 4 or 8 words of 32 bits, "
                          "got "
                       << type;
}
