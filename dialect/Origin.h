//===- Origin.h - how messages name a value ---------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_ORIGIN_H
#define MLAFIX_DIALECT_ORIGIN_H

#include "mlir/IR/Operation.h"

namespace mlafix {

/// Describes for a message where `value` comes from: the result of an
/// operation, or an argument of a region, such as the index of a grid.
inline std::string describeOrigin(mlir::Value value) {
  mlir::Operation *op = value.getDefiningOp();
  bool isResult = op;
  if (!op)
    op = value.getParentBlock()->getParentOp();
  return (isResult ? "a result of '" : "an argument of '") +
         op->getName().getStringRef().str() + "'";
}

} // namespace mlafix

#endif // MLAFIX_DIALECT_ORIGIN_H
