//===- ChooseLayout.h - how rows are shared out over lanes ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LAYOUT_CHOOSELAYOUT_H
#define MLAFIX_TRANSFORMS_LAYOUT_CHOOSELAYOUT_H

#include "dialect/Mlafix.h"
#include "lib/Machine/MachineModel.h"

#include "llvm/ADT/SetVector.h"

#include <map>

namespace mlafix {

/// The alias mode of a code version.
enum class AliasMode { OutOfPlace, InPlace };

/// Elements of the longest row: the index of an element is an i32.
inline constexpr int64_t kMaxRowElements = INT32_MAX;

/// The rows that a kernel moves: what its layouts depend on.
struct RowShape {
  /// Of a kernel whose rows all have a bound size, at most kMaxRowElements;
  /// else an error at an operation.
  static llvm::FailureOr<RowShape> of(KernelOp kernel);

  // Of the row tiles, but for those of one element a group, which follow the
  // rows of groups, and are moved as scalars are.
  llvm::SmallSetVector<DimAttr, 4> dims;
  std::map<int64_t, int64_t>
      elementBits; // moved for one of each argument moved as rows, by index
  std::map<int64_t, DimAttr> argDims;              // of their rows
  llvm::SmallSetVector<int64_t, 4> loaded, stored; // of these, the indices
  // Of these, what is only read into other rows: few lanes do, and packs are
  // chosen for the others.
  llvm::SmallSetVector<int64_t, 4> shifted;
  bool isRagged = false;
  int64_t reductions = 0;                 // of a row, or of groups of it
  bool keeps = false;                     // a computed row for several users
  bool isWide = false;                    // elements that take two registers
  bool accumulates = false;               // rows, in a loop of unknown length
  bool exchanges = false;                 // stores to other ranks
  bool staysInBlock = false;              // lanes of a row are of one block
  int64_t moves = 0;                      // of rows, at once
  int64_t operations = 0;                 // with f32 on each of their elements
  llvm::SmallSetVector<int64_t, 2> peers; // of `loaded`, other ranks' memory
  /// How much the accesses to rows of elements of so many bits move: bits for
  /// an element of a row, as often as a loop repeats them. Rows that each row
  /// of the grid, or each along its last extent, reads again come out of the
  /// caches and count nothing.
  std::map<int64_t, int64_t> movedByBits;

  /// Of several accesses to an argument, the widest one counts. `bits` are
  /// moved for an element of the row.
  void addAccess(int64_t argument, DimAttr dim, int64_t bits);
  bool reduces() const { return reductions > 0; }
  /// The alias mode of every code version.
  AliasMode aliasMode() const {
    bool isUpdate = llvm::any_of(
        stored, [&](int64_t index) { return loaded.contains(index); });
    return isUpdate ? AliasMode::InPlace : AliasMode::OutOfPlace;
  }
  /// The arguments that rows are stored to and none loaded from: what has been
  /// read is in the caches already.
  llvm::SmallVector<int64_t> outputs() const {
    return llvm::to_vector(llvm::make_filter_range(
        stored, [&](int64_t index) { return !loaded.contains(index); }));
  }
  int64_t widest() const {
    int64_t bits = 8;
    for (auto [index, size] : elementBits)
      if (!shifted.contains(index))
        bits = std::max(bits, size);
    return bits / 8;
  }
  /// True if rows are stored in another width than some are loaded in.
  bool converts() const {
    return llvm::any_of(stored, [&](int64_t to) {
      return llvm::any_of(loaded, [&](int64_t from) {
        return elementBits.at(from) != elementBits.at(to);
      });
    });
  }
  /// Bits of the elements that packs are chosen for: a pack of them is one
  /// access. Those of the widest rows that are read from other ranks, since
  /// they arrive over the slowest path; else the widest ones for which narrower
  /// rows, in narrower accesses, move at most `percent` of all.
  int64_t packedBits(int64_t percent) const;
  /// The fewest elements of a pack: two share a byte in some rows.
  int64_t leastPack() const {
    return llvm::any_of(elementBits,
                        [](const auto &entry) { return entry.second < 8; })
               ? 2
               : 1;
  }
};

/// The widest pack of any row, a power of two of `limit` elements at most, or
/// of leastPack().
int64_t choosePack(const RowShape &shape, int64_t limit);

/// Packs of the row that has the most of them.
int64_t countPacks(const RowShape &shape, int64_t pack);

/// A copy of `kernel` before it, called KERNEL_SUFFIX, with further guards.
KernelOp cloneCodeVersion(KernelOp kernel, llvm::StringRef suffix,
                          LayoutAttr layout,
                          llvm::ArrayRef<mlir::Attribute> guards);

/// By what the number of a block's threads is chosen.
enum class BlockRule {
  Ragged,    ///< the block scans a predicate
  NoRows,    ///< the kernel moves scalars alone
  Exchange,  ///< the same block of each rank waits for it
  HalfBytes, ///< a lane holds halfBytePacks of each row at once
  InPlace,   ///< a lane holds inPlacePacks of each row at once
  Bytes,     ///< how many bytes the block moves at once
};
BlockRule getBlockRule(const MachineModel &machine, const RowShape &shape,
                       int64_t pack, AliasMode aliasMode);

/// Distributes a row of `size` elements over lanes. A row stays within one warp
/// while that takes at most packsPerLane packs a lane; then the split that
/// leaves the fewest lanes idle wins, and of equals the one with the fewest
/// packs. A lane group never moves less than a 32-byte sector at once.
///
/// In place, lanes hold inPlacePacks of each row at least, lanes that reduce
/// rows reducedPacks, and lanes that accumulate them mergedPacks, as far as
/// heldBytes and heldAccesses allow; in a kernel with an exchange,
/// exchangePacks; of long rows of which two elements share a byte,
/// halfBytePacks; and of long rows with busyOperations on each element that
/// lanes reduce, busyPacks.
///
/// Lanes that do not synchronise need not be a power of two: a row of one pack
/// per lane then leaves none idle.
LayoutAttr chooseLayout(mlir::MLIRContext *context, const MachineModel &machine,
                        const RowShape &shape, int64_t pack,
                        AliasMode aliasMode, bool lanesSynchronise = true);

/// At most groupedPacks packs a lane, as long as a row has groupedLanes: what a
/// lane does once a chunk costs as much as what it does with a pack. The launch
/// chooses how many groups share its merge loops, `loops` of states, as many as
/// leave their chunks in a block's shared memory.
LayoutAttr getGroupedLayout(mlir::MLIRContext *context,
                            const MachineModel &machine, const RowShape &shape,
                            int64_t pack, int64_t loops);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_CHOOSELAYOUT_H
