//===- RowInvariantScalars.h - scalars of a row that need no row --*- C++
//-*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LAYOUT_ROWINVARIANTSCALARS_H
#define MLAFIX_TRANSFORMS_LAYOUT_ROWINVARIANTSCALARS_H

#include "dialect/Mlafix.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace mlafix {

/// The scalar ops of a row that need no row, and so can run ahead of it.
class RowInvariantScalars {
public:
  explicit RowInvariantScalars(mlir::Block &row);

  bool contains(mlir::Operation *op) const { return ops.contains(op); }
  llvm::ArrayRef<mlir::Operation *> inOrder() const {
    return ops.getArrayRef();
  }
  /// True if `op` is cheap enough to do again: neither it nor what it uses
  /// reads memory or computes.
  bool isCheap(mlir::Operation *op) const { return cheap.contains(op); }
  /// True if the row proper has its own copy of `op`.
  bool isRepeated(mlir::Operation *op) const {
    return isCheap(op) || compares.contains(op);
  }
  /// The other values that the row proper needs.
  llvm::ArrayRef<mlir::Value> kept() const { return needed.getArrayRef(); }

private:
  llvm::SetVector<mlir::Operation *> ops;
  llvm::SmallPtrSet<mlir::Operation *, 16> cheap;
  /// Comparisons of values that are kept with constants.
  llvm::SmallPtrSet<mlir::Operation *, 4> compares;
  llvm::SetVector<mlir::Value> needed;
};

/// True if the scalars of many rows of `kernel` may be computed before the
/// first of these rows is moved, and whether there is enough to compute.
/// `aliases` are the pairs of arguments that may be the same tensor. Where not,
/// `reason` says why.
bool canBatchScalars(KernelOp kernel, mlir::ArrayAttr aliases,
                     llvm::StringRef &reason);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_ROWINVARIANTSCALARS_H
