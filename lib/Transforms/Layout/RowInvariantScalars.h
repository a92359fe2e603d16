//===- RowInvariantScalars.h - scalars that need no row ---------*- C++ -*-===//
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

/// The scalar ops of a row's program that do not depend on row tiles and can
/// execute before all ops on row tiles. In a kernel with batches, they execute
/// for many rows (BatchRows.cpp) before the rest of the program executes for
/// the first of these rows.
class RowInvariantScalars {
public:
  explicit RowInvariantScalars(mlir::Block &row);

  bool contains(mlir::Operation *op) const { return ops.contains(op); }
  llvm::ArrayRef<mlir::Operation *> inOrder() const {
    return ops.getArrayRef();
  }
  /// Returns true if `op` is cheap to repeat: neither it nor its operands load
  /// or compute anything expensive.
  bool isCheap(mlir::Operation *op) const { return cheap.contains(op); }
  /// Returns true if the rest of the row's program computes `op` again.
  bool isRepeated(mlir::Operation *op) const {
    return isCheap(op) || compares.contains(op);
  }
  /// Returns the results of the ops in inOrder() that the rest of the row's
  /// program needs and does not compute again.
  llvm::ArrayRef<mlir::Value> kept() const { return needed.getArrayRef(); }

private:
  llvm::SetVector<mlir::Operation *> ops;
  llvm::SmallPtrSet<mlir::Operation *, 16> cheap;
  /// Comparisons of kept values with constants or with each other. The rest of
  /// the row's program repeats them, so their results are not kept.
  llvm::SmallPtrSet<mlir::Operation *, 4> compares;
  llvm::SetVector<mlir::Value> needed;
};

/// Returns true if `op` is so slow that it pays to compute it for several rows
/// at once, as a vector.
bool isLongScalar(mlir::Operation *op);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_ROWINVARIANTSCALARS_H
