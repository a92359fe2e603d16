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

/// The scalar ops of a row that do not depend on rows and can execute before
/// it.
class RowInvariantScalars {
public:
  explicit RowInvariantScalars(mlir::Block &row);

  bool contains(mlir::Operation *op) const { return ops.contains(op); }
  llvm::ArrayRef<mlir::Operation *> inOrder() const {
    return ops.getArrayRef();
  }
  /// True if `op` is cheap to repeat: neither it nor its operands load or
  /// compute anything.
  bool isCheap(mlir::Operation *op) const { return cheap.contains(op); }
  /// True if the row's own program has a copy of `op`.
  bool isRepeated(mlir::Operation *op) const {
    return isCheap(op) || compares.contains(op);
  }
  /// Other values that the row's own program needs.
  llvm::ArrayRef<mlir::Value> kept() const { return needed.getArrayRef(); }

private:
  llvm::SetVector<mlir::Operation *> ops;
  llvm::SmallPtrSet<mlir::Operation *, 16> cheap;
  /// Comparisons of kept values with constants.
  llvm::SmallPtrSet<mlir::Operation *, 4> compares;
  llvm::SetVector<mlir::Value> needed;
};

/// True if the scalars of many rows may be computed before the first of these
/// rows, and this is worth it. `aliases`: pairs of arguments that may be the
/// same tensor. If false, sets `reason`.
bool canBatchScalars(KernelOp kernel, mlir::ArrayAttr aliases,
                     llvm::StringRef &reason);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_ROWINVARIANTSCALARS_H
