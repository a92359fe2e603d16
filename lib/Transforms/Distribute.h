//===- Distribute.h - what the steps of mlafix-distribute share -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_DISTRIBUTE_H
#define MLAFIX_TRANSFORMS_DISTRIBUTE_H

#include "dialect/Mlafix.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace mlafix {

/// Where the program of a row runs: which thread of the row this is, and how
/// the row's threads meet. On a CPU a row has one lane, and meeting is free.
struct RowContext {
  LayoutAttr layout;
  bool isGPU = false;
  /// This thread's place among the lanes of its row, index; null when there is
  /// one lane.
  mlir::Value lane;
  /// The block that holds the row's program.
  mlir::Block *row = nullptr;
  /// The members of this row in their warp, i32; null when there is one lane.
  mlir::Value rowMask;
  /// In a layout of lane groups: this thread's group, how many groups the block
  /// has, of how many threads, and this thread's number among them; all i32.
  mlir::Value group, groups, groupThreads, member;

  bool crossesWarps() const { return layout.getLanes() > 32; }

  /// Makes the lanes of a row wait for each other.
  void barrier(mlir::OpBuilder &b, mlir::Location loc) const;
};

/// Replaces the kernel's grid by the arithmetic or the loops that give each row
/// to its threads, with the row's body in place, and records the launch
/// geometry on the kernel.
mlir::FailureOr<RowContext> distributeGrid(KernelOp kernel,
                                           llvm::StringRef target);

/// Replaces row tiles by packs, and loads, stores and reductions by a lane's
/// share of them.
mlir::LogicalResult distributeRows(KernelOp kernel, const RowContext &context);

/// For rows of many packs: the same in loops over the packs, unless scf.while
/// carries rows.
void distributeRowsInLoops(KernelOp kernel, const RowContext &context);

/// Builds index arithmetic at one location.
class IndexBuilder {
public:
  IndexBuilder(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, loc, value);
  }
  mlir::Value i32(int64_t value) {
    return mlir::arith::ConstantIntOp::create(b, loc, value, 32);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddIOp::create(b, loc, x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return mlir::arith::SubIOp::create(b, loc, x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return mlir::arith::MulIOp::create(b, loc, x, y);
  }
  mlir::Value div(mlir::Value x, mlir::Value y) {
    return mlir::arith::DivUIOp::create(b, loc, x, y);
  }
  mlir::Value rem(mlir::Value x, mlir::Value y) {
    return mlir::arith::RemUIOp::create(b, loc, x, y);
  }
  mlir::Value band(mlir::Value x, mlir::Value y) {
    return mlir::arith::AndIOp::create(b, loc, x, y);
  }
  mlir::Value select(mlir::Value p, mlir::Value x, mlir::Value y) {
    return mlir::arith::SelectOp::create(b, loc, p, x, y);
  }
  mlir::Value ult(mlir::Value x, mlir::Value y) {
    return compare(mlir::arith::CmpIPredicate::ult, x, y);
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value x,
                      mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  /// Unsigned widening or narrowing between i32 and index.
  mlir::Value toIndex(mlir::Value x) {
    return mlir::arith::IndexCastUIOp::create(b, loc, b.getIndexType(), x);
  }
  mlir::Value toI32(mlir::Value x) {
    return mlir::arith::IndexCastUIOp::create(b, loc, b.getI32Type(), x);
  }

  /// The indices of linear position `linear` in a row-major space of `extents`;
  /// all of one integer type.
  llvm::SmallVector<mlir::Value>
  delinearize(mlir::Value linear, llvm::ArrayRef<mlir::Value> extents);

private:
  mlir::OpBuilder &b;
  mlir::Location loc;
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_DISTRIBUTE_H
