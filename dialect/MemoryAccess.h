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

/// One access of an operation to a tensor. A MemoryAccess is valid only as long
/// as the operation exists.
struct MemoryAccess {
  mlir::Operation *op;
  mlir::Value memref;
  /// The indices, one for each dim. If `isRow` is true, there is none for the
  /// last dim.
  mlir::OperandRange indices;
  /// The predicate, an i1, or null if the access always happens.
  mlir::Value predicate;
  bool isWrite;
  /// True if the access is to a row along the last dim, false if to an element.
  bool isRow;
  /// True if the access is to a state's payload (a row) or lse (an element).
  bool isState;
  /// For a part of a row along a product: the index of the group, and the index
  /// of the element within each group. Null selects all groups, or all elements
  /// of a group, so the part is a row if one of the two is null. For a part,
  /// `indices` has one index fewer than the tensor has dims.
  mlir::Value group = {}, member = {};
  /// True if the access is to all members of a row, each as a row of its own.
  bool allMembers = false;
  /// True if the elements of the row have other positions in the loaded value
  /// than in memory (mlafix.load_into). A lane then loads elements that other
  /// lanes own in an access to the same row that is not shifted.
  bool isShifted = false;
  /// The slice of the row, or nullopt for the whole row.
  std::optional<RowSlice> slice = std::nullopt;

  /// Returns the kernel argument that is accessed, or null.
  mlir::BlockArgument getArgument() const;
  unsigned getArgNumber() const { return getArgument().getArgNumber(); }
  bool isPart() const { return group || member; }
  /// Returns true if this access and `other` are to the same kind of part:
  /// groups, members, the same slice, or whole rows. A lane then owns the same
  /// elements in both accesses. Returns false if one of them is shifted.
  bool isPartAs(const MemoryAccess &other) const;
  /// Returns the dim of the tensor's rows if it is a product, else null.
  DimAttr getProduct() const;
  /// Returns the index of the member if the access is to the row of one member
  /// but moves whole groups, and with them the rows of all members. This is so
  /// if the index is static, and a group has a power of two of elements, which
  /// take at most `kGroupBytes` bytes. Otherwise returns nullopt.
  std::optional<int64_t> getMovedMember() const;
  static constexpr int64_t kGroupBytes = 16;
  /// Returns the number of bits that the access moves per element of the row:
  /// those of a whole group if getMovedMember() has a value.
  int64_t getMovedBits() const;
  /// Returns true if the row has one element per group of a product. The lanes
  /// of a group share its element.
  bool isPerGroup() const;
  /// Returns the dim of the accessed row, or null for a single element.
  DimAttr getRowDim() const;
  /// Returns the type of an element in memory.
  mlir::Type getElementType() const {
    return mlir::cast<mlir::MemRefType>(memref.getType()).getElementType();
  }
};

/// Returns the accesses of `root` and of all nested operations, in program
/// order.
llvm::SmallVector<MemoryAccess> collectAccesses(mlir::Operation *root);

/// Returns the access of `op` if `op` accesses memory, but loads or stores no
/// state. Otherwise returns nullopt.
std::optional<MemoryAccess> getSingleAccess(mlir::Operation *op);

/// Returns true if `isSuch` holds for `root` or a nested operation. If `OpTy`
/// is given, asks only operations of this kind.
template <typename OpTy = mlir::Operation *, typename Predicate>
bool anyOp(mlir::Operation *root, Predicate isSuch) {
  return root
      ->walk([&](OpTy op) {
        return isSuch(op) ? mlir::WalkResult::interrupt()
                          : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns true if `op` or a nested operation may have a memory effect other
/// than reading.
bool mayWrite(mlir::Operation *op);

/// Returns true if an operation between `first` and `last` may write memory.
/// `last` must follow `first` in the same block.
bool mayWriteBetween(mlir::Operation *first, mlir::Operation *last);

} // namespace mlafix

#endif // MLAFIX_DIALECT_MEMORYACCESS_H
