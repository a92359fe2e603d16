//===- ChooseLayout.h - distributes rows over lanes -------------*- C++ -*-===//
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

/// Says if a code version's outputs are distinct from its inputs (OutOfPlace),
/// or may be the same tensors (InPlace).
enum class AliasMode { OutOfPlace, InPlace };

/// The largest number of elements in a row, since an element's index is an i32.
inline constexpr int64_t kMaxRowElements = INT32_MAX;

/// The properties of a kernel's rows that determine its layout.
struct RowShape {
  /// Computes the shape of `kernel`. All rows must have bound sizes of at most
  /// kMaxRowElements; otherwise reports an error at an operation.
  static llvm::FailureOr<RowShape> of(KernelOp kernel,
                                      const MachineModel &machine);

  // Dims of the row tiles. Rows with one element per group are left out: they
  // are distributed like the rows of groups, and accessed like scalars.
  llvm::SmallSetVector<DimAttr, 4> dims;
  // Bits accessed per element, by the index of an argument accessed as rows.
  std::map<int64_t, int64_t> elementBits;
  std::map<int64_t, DimAttr> argDims; // row dims, by argument index
  llvm::SmallSetVector<int64_t, 4> loaded, stored; // argument indices
  // Arguments whose rows are only read into other rows; they are in neither
  // `loaded` nor `stored`. Few lanes access these rows, so packs are chosen for
  // the other rows.
  llvm::SmallSetVector<int64_t, 4> shifted;
  bool isRagged = false;
  int64_t reductions = 0;                 // ops in which lanes exchange values
  bool keeps = false;                     // a computed row has several users
  bool isWide = false;                    // elements take two registers
  bool accumulates = false;               // a loop of unknown trip count
                                          // carries rows
  bool divides = false;                   // rows are divided by numbers, with
                                          // correct rounding
  bool exchanges = false;                 // rows are stored to other ranks
  bool staysInBlock = false;              // all lanes of a row must be in one
                                          // block
  int64_t moves = 0;                      // accesses to rows in flight at once
  int64_t operations = 0;                 // f32 operations per row element
  llvm::SmallSetVector<int64_t, 2> peers; // arguments loaded from the memory
                                          // of other ranks
  /// Bits moved per row element, by the element's bits. Accesses in loops count
  /// once per iteration. A load that does not depend on the grid's last index
  /// does not count: consecutive grid rows load the same row, which comes from
  /// the caches.
  std::map<int64_t, int64_t> movedByBits;

  /// Records an access to rows of `argument` with `bits` per element. The
  /// widest access of an argument counts.
  void addAccess(int64_t argument, DimAttr dim, int64_t bits);
  bool reduces() const { return reductions > 0; }
  /// Returns the bits moved per element, of all rows together.
  int64_t movedBits() const {
    int64_t bits = 0;
    for (auto [width, moved] : movedByBits)
      bits += moved;
    return bits;
  }
  /// Returns the alias mode that holds for every code version.
  AliasMode aliasMode() const {
    bool isUpdate = llvm::any_of(
        stored, [&](int64_t index) { return loaded.contains(index); });
    return isUpdate ? AliasMode::InPlace : AliasMode::OutOfPlace;
  }
  /// Returns the arguments whose rows are stored but not loaded. Streaming
  /// stores are for these arguments only, since rows that were loaded are
  /// already in the caches.
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
  /// Returns the bits per element of the narrowest stored rows.
  int64_t narrowestStored() const {
    int64_t bits = 64;
    for (int64_t index : stored)
      bits = std::min(bits, elementBits.at(index));
    return bits;
  }
  /// True if some stored rows have another element width than some loaded rows.
  bool converts() const {
    return llvm::any_of(stored, [&](int64_t to) {
      return llvm::any_of(loaded, [&](int64_t from) {
        return elementBits.at(from) != elementBits.at(to);
      });
    });
  }
  /// Returns the element width (in bits) for which packs are chosen, so that a
  /// pack is one access. If rows are read from other ranks, it is the width of
  /// the widest of them, since the link to other ranks is the slowest path.
  /// Otherwise it is the greatest width such that narrower rows, whose accesses
  /// are narrower too, make up at most `percent` of all bits moved.
  int64_t packedBits(int64_t percent) const;
  /// Returns the least number of elements per pack: 2 if two elements of some
  /// row share a byte, else 1.
  int64_t leastPack() const {
    return llvm::any_of(elementBits,
                        [](const auto &entry) { return entry.second < 8; })
               ? 2
               : 1;
  }
};

/// Counts of one iteration of a loop that loads rows.
struct LoopWork {
  mlir::Operation *loop = nullptr;
  int64_t operations = 0; ///< on f32 elements, reductions included
  int64_t loadedBits = 0; ///< of all rows that the iteration loads
  int64_t narrowest = 64; ///< bits of an element of the narrowest of these rows
  int64_t heldBits = 0;   ///< per row element: of the rows that the iteration
                          ///< loads, and of rows that are kept meanwhile
  int64_t functions = 0; ///< calls of functions but `exp2` and `abs`, divisions
  bool reduces = false;  ///< lanes exchange values
  bool isRest = false;   ///< does what is left of the unrolled loop before it
};

/// Returns the number of times that `op` executes per row of `grid`, or, if
/// `op` is a loop, its body. Counts at most 2^16, and `unknown` iterations of a
/// loop of unknown trip count. If such a loop is unrolled, one iteration stands
/// for several of these.
int64_t countRepeats(mlir::Operation *op, mlir::Operation *grid,
                     int64_t unknown);

/// Returns the work of all loops of `kernel` that load rows.
llvm::SmallVector<LoopWork> getLoopWork(KernelOp kernel);

/// Returns the layout of `version` with half as many lanes, each with two packs
/// in place of one. Fewer lanes exchange values, and repeat what is computed
/// once per row. Returns null unless a loop computes much on the rows that it
/// loads, and these rows fit into the registers, which no other loop takes.
LayoutAttr getSharedLayout(KernelOp version, const MachineModel &machine);

/// True if `value` depends on `index`, possibly through the bounds of a loop.
/// `known` caches answers.
bool dependsOn(mlir::Value value, mlir::Value index,
               llvm::DenseMap<mlir::Value, bool> &known);

/// Returns the widest pack that some row allows, in elements. It is a power of
/// two of at most `limit`, or leastPack() if that is larger.
int64_t choosePack(const RowShape &shape, int64_t limit);

/// Returns the number of packs in the longest row.
int64_t countPacks(const RowShape &shape, int64_t pack);

/// Inserts a copy of `kernel` before it, named KERNEL_SUFFIX, with `guards` in
/// addition.
KernelOp cloneCodeVersion(KernelOp kernel, llvm::StringRef suffix,
                          PlanAttr plan,
                          llvm::ArrayRef<mlir::Attribute> guards);

/// The kinds of work for which a lane holds at least sharedPacks packs of each
/// row.
enum class SharedWork {
  None,
  Reductions,
  /// Divisions of rows that are stored in elements of at least 16 bits. They
  /// count if a pack has fewer than sharedDivisions elements, but sharedPacks
  /// packs have that many.
  Divisions,
  /// Conversions to another element width. They count if a lane moves fewer
  /// than convertedBytes with one pack.
  Conversions
};

/// Returns the first kind of SharedWork that applies to lanes with packs of
/// `pack` elements.
SharedWork getSharedWork(const MachineModel &machine, const RowShape &shape,
                         int64_t pack);

/// Distributes the rows of `shape` over lanes.
///
/// Each lane has one pack if lanes do not synchronise, a warp can hold the row,
/// and the kernel is neither in place nor ragged. The number of lanes is then
/// the number of packs, so no lane is idle; it need not be a power of two. With
/// a SharedWork, each lane has the least number of packs listed below instead.
/// This requires that no lane becomes idle and that the lanes of the row still
/// access at least a sector at once.
///
/// Other rows stay within one warp if that takes at most packsPerLane packs per
/// lane. Among the possible splits, the one with the fewest idle lanes wins,
/// then the one with the fewest packs. The lanes of a row access at least a
/// 32-byte sector at once.
///
/// The least number of packs of each row that a lane should hold is the first
/// of these that applies:
///   - exchangePacks in a kernel with an exchange
///   - halfBytePacks for long rows in which two elements share a byte
///   - busyPacks for long rows that are reduced out of place, with at least
///     busyOperations per element
///   - inPlacePacks in place
///   - sharedPacks with a SharedWork
///   - mergedPacks if a loop of unknown trip count carries rows
/// All but the first two apply only as far as heldBytes and heldAccesses allow.
/// Otherwise the number is 1.
///
/// The returned plan contains the layout and the rule that chose its block.
PlanAttr chooseLayout(mlir::MLIRContext *context, const MachineModel &machine,
                      const RowShape &shape, int64_t pack, AliasMode aliasMode,
                      bool lanesSynchronise = true);

/// Chooses a plan for rows whose packs are independent: parts of a row go to
/// blocks that do not wait for each other. A lane has so many packs that a
/// block moves blockBytes at once. Returns null if one block can hold a row
/// with two packs per lane.
PlanAttr chooseParts(mlir::MLIRContext *context, const MachineModel &machine,
                     const RowShape &shape, int64_t pack);

/// Returns the number of elements of the longest row that fits in one block.
/// Returns 0 if a row of `needed` packs takes no cluster.
int64_t getMostInBlock(mlir::MLIRContext *context, const MachineModel &machine,
                       const RowShape &shape, int64_t needed, int64_t pack);

/// Returns the plan for a kernel with lane groups. A lane has up to
/// groupedPacks packs if at least groupedLanes lanes then remain for a row,
/// because a lane's work per chunk costs as much as its work for a pack. The
/// launch chooses how many groups share the merge loops. The plan limits the
/// number of groups to those whose chunks fit in shared memory, where each of
/// the `loops` loops that merge states needs space.
PlanAttr getGroupedLayout(mlir::MLIRContext *context,
                          const MachineModel &machine, const RowShape &shape,
                          int64_t pack, int64_t loops);

} // namespace mlafix

#endif // MLAFIX_PLAN_CHOOSELAYOUT_H
