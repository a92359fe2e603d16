//===- MemoryAccess.h - reads and writes of tensors -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_MEMORYACCESS_H
#define MLAFIX_DIALECT_MEMORYACCESS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace mlafix {

class DimAttr;

/// The elements of a row from `begin` up to, not including, `end`.
struct RowSlice {
  int64_t begin = 0, end = 0;
  bool operator==(const RowSlice &other) const {
    return begin == other.begin && end == other.end;
  }
};

/// One access of an op to one tensor. Valid as long as the op is.
struct MemoryAccess {
  mlir::Operation *op;
  mlir::Value memref;
  /// One for each dim, or for each but the last: see `isRow`.
  mlir::OperandRange indices;
  /// i1; null: the access always happens.
  mlir::Value predicate;
  bool isWrite;
  /// True if it is of a row along the last dim; else of one element.
  bool isRow;
  /// True if it is of a state's payload (a row) or lse (an element).
  bool isState;
  /// Of a part of a row of groups: which group, and which element of each,
  /// index; null: all of them. A row along the group or along the groups is a
  /// tile, too, and has an index for each dim but the last.
  mlir::Value group = {}, member = {};
  /// True if it is of all members of a row, each a row of its own.
  bool allMembers = false;
  /// True if a lane moves other elements of the row than its own.
  bool isShifted = false;
  /// Of a row: the elements that it is of; none: all of them.
  std::optional<RowSlice> slice = std::nullopt;

  /// The tensor as an argument of the kernel; null if it is none.
  mlir::BlockArgument getArgument() const;
  unsigned getArgNumber() const { return getArgument().getArgNumber(); }
  bool isPart() const { return group || member; }
  /// True if both are of groups, of members, of one slice, or of no part: then
  /// the same element of two rows is the same lane's in both.
  bool isPartAs(const MemoryAccess &other) const;
  /// The dim of the tensor's rows, where it is a product; else null.
  DimAttr getProduct() const;
  /// Which member it is of, where the rows of all members of a row are moved at
  /// once, in accesses of whole groups: it is known then, and a group is a
  /// power of two of bytes, at most `kGroupBytes`.
  std::optional<int64_t> getMovedMember() const;
  static constexpr int64_t kGroupBytes = 16;
  /// Bits that are moved for an element of the row, or for the element.
  int64_t getMovedBits() const;
  /// True if it is of a row of one element for each group of a product: lanes
  /// that share a group share its element.
  bool isPerGroup() const;
  /// The dim of the row; null for an element.
  DimAttr getRowDim() const;
  /// The element type in memory.
  mlir::Type getElementType() const {
    return mlir::cast<mlir::MemRefType>(memref.getType()).getElementType();
  }
};

/// The accesses of `root` and of all ops in it, in program order.
llvm::SmallVector<MemoryAccess> collectAccesses(mlir::Operation *root);

/// The access that `op` itself makes: that of a load or store of a row or a
/// scalar. None for all other ops, those with two accesses among them.
std::optional<MemoryAccess> getSingleAccess(mlir::Operation *op);

/// True if `op`, or an op in it, may do more to memory than read it.
bool mayWrite(mlir::Operation *op);

/// True if an op between `first` and `last`, which comes behind it in the same
/// block, may write memory.
bool mayWriteBetween(mlir::Operation *first, mlir::Operation *last);

} // namespace mlafix

#endif // MLAFIX_DIALECT_MEMORYACCESS_H
