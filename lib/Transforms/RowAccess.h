//===- RowAccess.h - moving and combining parts of a row -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ROWACCESS_H
#define MLAFIX_TRANSFORMS_ROWACCESS_H

#include "dialect/Guards.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Target.h"

namespace mlafix {

/// How the rows of a kernel are shared out, and which share is this thread's.
/// On a CPU a row has one lane.
struct RowLayout {
  /// Of a kernel whose grid has been replaced.
  explicit RowLayout(KernelOp kernel);

  LayoutAttr layout;
  mlir::ArrayAttr guards;
  bool isGPU;
  /// This thread's lane in its row, index; null when there is one lane.
  mlir::Value lane;
  /// The members of this row in their warp, i32; null where they never meet.
  mlir::Value members;

  static int64_t sizeOf(mlir::Type tile) { return getTileDim(tile).getSize(); }
  /// Elements of a pack of a row tile.
  int64_t packOf(mlir::Type tile) const { return layout.packFor(sizeOf(tile)); }
  /// Packs that a lane holds of a row tile.
  int64_t packsOf(mlir::Type tile) const {
    return layout.packsFor(sizeOf(tile));
  }
  /// The type of a pack of a row tile, of the tile's elements or others.
  mlir::VectorType packType(mlir::Type tile) const {
    return packType(tile, mlir::getElementTypeOrSelf(tile));
  }
  mlir::VectorType packType(mlir::Type tile, mlir::Type element) const {
    return mlir::VectorType::get({packOf(tile)}, element);
  }

  /// Where pack `p` of this lane begins in a row of type `tile`, index.
  mlir::Value packStart(mlir::OpBuilder &b, mlir::Location loc, mlir::Type tile,
                        int64_t p) const {
    IndexBuilder x(b, loc);
    int64_t pack = packOf(tile), base = p * layout.getLanes() * pack;
    if (!lane)
      return x.constant(base);
    return x.add(x.mul(lane, x.constant(pack)), x.constant(base));
  }

  /// Whether pack `p` lies within the row; null if it does in every lane.
  mlir::Value packExists(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Type tile, int64_t p) const {
    if ((p + 1) * layout.getLanes() * packOf(tile) <= sizeOf(tile))
      return {};
    IndexBuilder x(b, loc);
    return x.ult(packStart(b, loc, tile, p), x.constant(sizeOf(tile)));
  }

  /// The alignment in bytes that an access to a pack of `memref` may assume.
  int64_t alignmentOf(mlir::Value memref) const {
    int64_t bytes = getDTypeBytes(
        mlir::cast<mlir::MemRefType>(memref.getType()).getElementType());
    mlir::BlockArgument argument = getKernelArgument(memref);
    return argument
               ? std::max(bytes,
                          getGuardedAlignment(guards, argument.getArgNumber()))
               : bytes;
  }

  /// Whether stores to `memref` should bypass the caches, which cannot hold all
  /// of what is written.
  bool isStreamed(mlir::Value memref) const {
    mlir::BlockArgument argument = getKernelArgument(memref);
    return argument && isGuardedBeyondCache(guards, argument.getArgNumber());
  }
};

/// Checks that the rows of `kernel` can be done pack by pack: its grid has been
/// replaced, and no op takes a row as a whole.
llvm::LogicalResult verifyRowOps(KernelOp kernel);

/// Conjunction of predicates that may be absent.
mlir::Value both(mlir::OpBuilder &b, mlir::Location loc, mlir::Value p,
                 mlir::Value q);

/// An access's predicate, and the presence of the argument if that is optional;
/// null for always.
mlir::Value accessPredicate(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value predicate, mlir::Value memref);

/// Whether both tensors of a state were given and its predicate holds; null for
/// always.
mlir::Value statePredicate(mlir::OpBuilder &b, LoadStateOp load);

/// What was read by `load` as its result holds it: floats widen to f32 (N7),
/// integers to the result's width; the bits of a float or a boolean that is
/// only moved, likewise.
mlir::Value widen(mlir::OpBuilder &b, LoadOp load, mlir::Value value);
/// `value` as `store` writes it: f32 becomes a float in memory (N7), all but
/// bytes a byte within its range, and an integer that of a dtype variable,
/// sign-extended or its low bits.
mlir::Value narrow(mlir::OpBuilder &b, StoreOp store, mlir::Value value);

/// One element, or one pack, of `source`, as it is in memory (but for a sign,
/// which bodies do not know); zero where the predicate, if there is one, is
/// false.
mlir::Value readMemory(mlir::OpBuilder &b, mlir::Location loc,
                       const RowLayout &layout, mlir::Value predicate,
                       mlir::Type type, mlir::Value source,
                       mlir::ValueRange indices);

/// What `write` builds, under the predicate if there is one.
void writeIf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value predicate,
             llvm::function_ref<void(mlir::OpBuilder &)> write);

/// One step of a reduction.
mlir::Value combine(mlir::OpBuilder &b, mlir::Location loc, ReduceKind kind,
                    mlir::Value x, mlir::Value y);

/// The reduction of `values` by the tree of `mlafix.reduce`: neighbours first;
/// a missing neighbour is neutral.
mlir::Value reduceTree(mlir::OpBuilder &b, mlir::Location loc, ReduceKind kind,
                       llvm::SmallVector<mlir::Value> values);

/// Where a pack of a row is in `memref` (null: in the row): its first element,
/// index, and whether it lies in the row (null: always). A lane's own buffer
/// holds its packs alone.
using PackPositionFn =
    llvm::function_ref<std::pair<mlir::Value, mlir::Value>(mlir::Value memref)>;

/// Whether `op`, which takes or makes a row, does the same to each of its packs
/// apart from the others: an access, a splat, its indices, a constant of one
/// value, or an elementwise op with one result.
bool isPackwise(mlir::Operation *op);
/// Does such an op to one pack of a row. `operands` are the op's, with a pack
/// for a row. Null where the op has no result. What is not to be read is zero,
/// or the `else` value.
mlir::Value doToPack(mlir::OpBuilder &b, const RowLayout &layout,
                     mlir::Operation *op, mlir::ValueRange operands,
                     PackPositionFn positionIn);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWACCESS_H
