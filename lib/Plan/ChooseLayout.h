//===- ChooseLayout.h - how rows are shared out over lanes ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PLAN_CHOOSELAYOUT_H
#define MLAFIX_PLAN_CHOOSELAYOUT_H

#include "dialect/Plan.h"
#include "lib/Machine/MachineModel.h"

#include "llvm/ADT/SetVector.h"

#include <map>

namespace mlafix {

/// The alias mode of a code version.
enum class AliasMode { OutOfPlace, InPlace };

/// Limit of a row's length: the index of an element is an i32.
inline constexpr int64_t kMaxRowElements = INT32_MAX;

/// The rows that a kernel accesses, as far as its layout depends on them.
struct RowShape {
  /// The shape of a kernel whose rows are all bound to sizes of at most
  /// kMaxRowElements. Otherwise reports an error at an operation.
  static llvm::FailureOr<RowShape> of(KernelOp kernel,
                                      const MachineModel &machine);

  // Dims of the row tiles. Excludes rows with one element per group, which are
  // distributed like the rows of the groups and accessed like scalars.
  llvm::SmallSetVector<DimAttr, 4> dims;
  std::map<int64_t, int64_t>
      elementBits; // bits accessed per element, by argument accessed as rows
  std::map<int64_t, DimAttr> argDims;              // dims of their rows
  llvm::SmallSetVector<int64_t, 4> loaded, stored; // indices of these arguments
  // The indices of `loaded` and `stored` rows that are only read into other
  // rows. Few lanes access them, so packs are chosen for the other rows.
  llvm::SmallSetVector<int64_t, 4> shifted;
  bool isRagged = false;
  int64_t reductions = 0;                 // of rows or of their groups
  bool keeps = false;                     // a computed row has several users
  bool isWide = false;                    // elements take two registers
  bool accumulates = false;               // carries rows through a loop of
                                          // unknown trip count
  bool divides = false;                   // by numbers, correctly rounded
  bool exchanges = false;                 // stores to other ranks
  bool staysInBlock = false;              // the lanes of a row must be in one
                                          // block, or in none at all
  int64_t moves = 0;                      // accesses to rows in flight at once
  int64_t operations = 0;                 // f32 operations per row element
  llvm::SmallSetVector<int64_t, 2> peers; // those of `loaded` in other ranks'
                                          // memory
  /// Bits moved per row element, by the element's bits, weighted by the trip
  /// counts of loops. Rows that every row of the grid reads, or every row along
  /// its last extent, come from the caches and do not count.
  std::map<int64_t, int64_t> movedByBits;

  /// Records an access of `bits` per element. If an argument has several, the
  /// widest counts.
  void addAccess(int64_t argument, DimAttr dim, int64_t bits);
  bool reduces() const { return reductions > 0; }
  /// The alias mode of every code version.
  AliasMode aliasMode() const {
    bool isUpdate = llvm::any_of(
        stored, [&](int64_t index) { return loaded.contains(index); });
    return isUpdate ? AliasMode::InPlace : AliasMode::OutOfPlace;
  }
  /// The arguments to which rows are stored but from which none are loaded,
  /// since rows that were read are already in the caches.
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
  /// The fewest bits of an element of the rows that are stored.
  int64_t narrowestStored() const {
    int64_t bits = 64;
    for (int64_t index : stored)
      bits = std::min(bits, elementBits.at(index));
    return bits;
  }
  /// True if some rows are stored with another width than that of some loaded
  /// rows.
  bool converts() const {
    return llvm::any_of(stored, [&](int64_t to) {
      return llvm::any_of(loaded, [&](int64_t from) {
        return elementBits.at(from) != elementBits.at(to);
      });
    });
  }
  /// The element width for which packs are chosen, so that a pack is one
  /// access. If rows are read from other ranks, the widest of these, since that
  /// path is the slowest. Otherwise the greatest width for which narrower rows,
  /// in narrower accesses, make up at most `percent` of all bits moved.
  int64_t packedBits(int64_t percent) const;
  /// The least elements per pack: 2 if two elements of some row share a byte.
  int64_t leastPack() const {
    return llvm::any_of(elementBits,
                        [](const auto &entry) { return entry.second < 8; })
               ? 2
               : 1;
  }
};

/// True if `value` depends on `index`, possibly through a loop's bounds.
/// `known` has the answers so far.
bool dependsOn(mlir::Value value, mlir::Value index,
               llvm::DenseMap<mlir::Value, bool> &known);

/// The widest pack that every row allows: a power of two, at most `limit`
/// elements (but at least leastPack()).
int64_t choosePack(const RowShape &shape, int64_t limit);

/// The number of packs of the longest row.
int64_t countPacks(const RowShape &shape, int64_t pack);

/// Inserts a copy of `kernel` before it, called KERNEL_SUFFIX, with additional
/// guards.
KernelOp cloneCodeVersion(KernelOp kernel, llvm::StringRef suffix,
                          PlanAttr plan,
                          llvm::ArrayRef<mlir::Attribute> guards);

/// The work for which a lane holds at least sharedPacks packs of each row.
enum class SharedWork {
  None,
  Reductions,
  /// Divisions of rows that are stored in elements of 16 bits or more. They
  /// count where one pack has fewer than sharedDivisions elements, and
  /// sharedPacks packs have that many.
  Divisions,
  /// Conversions to another width. They count where a lane moves fewer than
  /// convertedBytes with one pack.
  Conversions
};

/// The first of these kinds of work that lanes with packs of `pack` elements
/// do.
SharedWork getSharedWork(const MachineModel &machine, const RowShape &shape,
                         int64_t pack);

/// Distributes the rows of `shape` over lanes. Lanes that do not synchronise
/// have one pack each if a warp holds the row, or sharedPacks if they have a
/// SharedWork and none is then idle. Otherwise the row stays within one warp if
/// that takes at most packsPerLane packs per lane; the split with the fewest
/// idle lanes wins, then the one with the fewest packs. The lanes of a row
/// access at least a 32-byte sector at once.
///
/// Lanes hold at least this many packs of each row, as far as heldBytes and
/// heldAccesses allow: inPlacePacks in place, sharedPacks with a SharedWork,
/// and mergedPacks if they accumulate rows. In a kernel with an exchange they
/// hold exchangePacks. For long rows in which two elements share a byte it is
/// halfBytePacks, and for long rows that lanes reduce with busyOperations on
/// each element, busyPacks.
///
/// The number of lanes that do not synchronise need not be a power of two, so
/// that none is idle.
///
/// The plan contains this layout and the rule that chose its block.
PlanAttr chooseLayout(mlir::MLIRContext *context, const MachineModel &machine,
                      const RowShape &shape, int64_t pack, AliasMode aliasMode,
                      bool lanesSynchronise = true);

/// The plan for rows whose packs are independent: parts of a row go to blocks
/// that do not wait for each other. A lane has enough packs for a block to move
/// blockBytes at once. Null if the lanes of one block can hold a row with two
/// packs each.
PlanAttr chooseParts(mlir::MLIRContext *context, const MachineModel &machine,
                     const RowShape &shape, int64_t pack);

/// The elements of the longest row that one block holds, if a row of `needed`
/// packs takes a cluster. 0 if it does not.
int64_t getMostInBlock(mlir::MLIRContext *context, const MachineModel &machine,
                       const RowShape &shape, int64_t needed, int64_t pack);

/// The layout for kernels with lane groups. A lane has up to groupedPacks packs
/// as long as a row has groupedLanes, because a lane's work per chunk costs as
/// much as a pack. The launch chooses how many groups share the merge loops
/// (`loops` of these merge states); the limit is the shared memory for their
/// chunks.
PlanAttr getGroupedLayout(mlir::MLIRContext *context,
                          const MachineModel &machine, const RowShape &shape,
                          int64_t pack, int64_t loops);

} // namespace mlafix

#endif // MLAFIX_PLAN_CHOOSELAYOUT_H
