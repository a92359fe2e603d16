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

/// The elements [begin, end) of a row.
struct RowSlice {
  int64_t begin = 0, end = 0;
  bool operator==(const RowSlice &other) const {
    return begin == other.begin && end == other.end;
  }
};

/// An access of an op to a tensor. Valid as long as the op.
struct MemoryAccess {
  mlir::Operation *op;
  mlir::Value memref;
  /// One per dim, or without the last dim if `isRow`.
  mlir::OperandRange indices;
  /// i1; null if unconditional.
  mlir::Value predicate;
  bool isWrite;
  /// True for a row along the last dim, false for an element.
  bool isRow;
  /// True for a state's payload (row) or lse (element).
  bool isState;
  /// For parts of a row of groups: the index of the group, and of the element
  /// within groups. Null means all groups, or all elements. An access to all
  /// groups or all members yields a row tile; it has one index less than the
  /// tensor has dims.
  mlir::Value group = {}, member = {};
  /// True if it covers all members of a row, each as a row of its own.
  bool allMembers = false;
  /// True if a lane loads elements of the row that other lanes own.
  bool isShifted = false;
  /// The accessed slice of the row; nullopt for the whole row.
  std::optional<RowSlice> slice = std::nullopt;

  /// The kernel argument that is accessed, or null.
  mlir::BlockArgument getArgument() const;
  unsigned getArgNumber() const { return getArgument().getArgNumber(); }
  bool isPart() const { return group || member; }
  /// True if both access the same kind of part (groups, members, the same
  /// slice, or whole rows), so that the same lane owns the same element in
  /// both.
  bool isPartAs(const MemoryAccess &other) const;
  /// The dim of the tensor's rows if it is a product, else null.
  DimAttr getProduct() const;
  /// The member index, if accesses of whole groups move the rows of all members
  /// together. This needs a static index, and groups whose size in bytes is a
  /// power of two and at most `kGroupBytes`.
  std::optional<int64_t> getMovedMember() const;
  static constexpr int64_t kGroupBytes = 16;
  /// Bits moved per element.
  int64_t getMovedBits() const;
  /// True for a row with one element per group of a product: the lanes of a
  /// group share its element.
  bool isPerGroup() const;
  /// The dim of the accessed row; null for an element.
  DimAttr getRowDim() const;
  /// The element type in memory.
  mlir::Type getElementType() const {
    return mlir::cast<mlir::MemRefType>(memref.getType()).getElementType();
  }
};

/// The accesses of `root` and of all nested ops, in program order.
llvm::SmallVector<MemoryAccess> collectAccesses(mlir::Operation *root);

/// The access of `op` itself if it is a load or store of a row or scalar.
/// Nullopt for all other ops, including those with two accesses.
std::optional<MemoryAccess> getSingleAccess(mlir::Operation *op);

/// True if `op`, or a nested op, may have a memory effect other than reading.
bool mayWrite(mlir::Operation *op);

/// True if an op between `first` and `last` may write memory; `last` follows
/// `first` in the same block.
bool mayWriteBetween(mlir::Operation *first, mlir::Operation *last);

} // namespace mlafix

#endif // MLAFIX_DIALECT_MEMORYACCESS_H
