//===- Aliasing.cpp - arguments that may be the same tensor ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Aliasing.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace mlafix;

/// Returns the innermost loop inside the grid that contains `op`, or null.
static Operation *getLoop(Operation *op) {
  for (Operation *parent = op->getParentOp();
       parent && !isa<ForallOp, RaggedForallOp, KernelOp>(parent);
       parent = parent->getParentOp())
    if (isa<LoopLikeOpInterface>(parent))
      return parent;
  return nullptr;
}

/// Returns the grid indices that identify a row: all in a dense grid, all but
/// the segment in a ragged grid. Leaves out indices of extent 1, which are
/// always 0.
static SmallVector<Value> getRowIndices(KernelOp kernel) {
  SmallVector<Value> indices;
  auto add = [&](ValueRange arguments, ValueRange extents) {
    for (auto [argument, extent] : llvm::zip(arguments, extents))
      if (!matchPattern(extent, m_One()))
        indices.push_back(argument);
  };
  if (auto grid = dyn_cast<ForallOp>(kernel.getGrid())) {
    add(grid.getBody().getArguments(), grid.getExtents());
    return indices;
  }
  auto grid = cast<RaggedForallOp>(kernel.getGrid());
  ValueRange arguments = grid.getBody().getArguments();
  indices.push_back(arguments[1]);
  add(arguments.drop_front(2), grid.getInner());
  return indices;
}

/// True if `read` may execute after `write` in the same row. Both must be
/// outside of loops. Only one branch of an `scf.if` executes, so an op in one
/// branch does not follow an op in the other.
static bool mayFollow(Operation *write, Operation *read) {
  for (Operation *op = write; op; op = op->getParentOp())
    if (Operation *other = op->getBlock()->findAncestorOpInBlock(*read))
      return other == op ? !isa<scf::IfOp>(op) : op->isBeforeInBlock(other);
  return true;
}

/// True if the kernel's grid is ragged and reads its segments from `argument`.
static bool findsRowsIn(KernelOp kernel, BlockArgument argument) {
  auto grid = dyn_cast<RaggedForallOp>(kernel.getGrid());
  return grid && grid.getCuSeqlens() == argument;
}

/// True if the accesses of two arguments allow them to be one tensor.
static bool mayAlias(KernelOp kernel, unsigned written, unsigned read) {
  SmallVector<MemoryAccess> ofWritten, ofRead;
  for (const MemoryAccess &access : collectAccesses(kernel)) {
    if (access.memref == kernel.getArgument(written))
      ofWritten.push_back(access);
    if (access.memref == kernel.getArgument(read))
      ofRead.push_back(access);
  }
  bool rowsInWritten = findsRowsIn(kernel, kernel.getArgument(written)),
       rowsInRead = findsRowsIn(kernel, kernel.getArgument(read));
  if ((ofWritten.empty() && !rowsInWritten) || (ofRead.empty() && !rowsInRead))
    return true;
  if (rowsInWritten || rowsInRead)
    return false;
  // If all accesses have the row's indices at the same positions, a row touches
  // only its own elements.
  const MemoryAccess &first = ofWritten.front();
  SmallVector<size_t> naming;
  for (Value index : getRowIndices(kernel)) {
    auto found = llvm::find(first.indices, index);
    if (found == first.indices.end())
      return false;
    naming.push_back(found - first.indices.begin());
  }
  for (const MemoryAccess &access :
       llvm::concat<const MemoryAccess>(ofWritten, ofRead)) {
    bool namesRow = access.indices.size() == first.indices.size() &&
                    llvm::all_of(naming, [&](size_t i) {
                      return access.indices[i] == first.indices[i];
                    });
    if (!namesRow || getLoop(access.op))
      return false;
  }
  // If the two arguments are one tensor, a read of `read` after a write of
  // `written` gets another value than the caller passed. A read of `written`
  // gets the same value as with two tensors, so it needs no check.
  for (const MemoryAccess &access : ofWritten)
    for (const MemoryAccess &other : ofRead)
      if (access.isWrite && mayFollow(access.op, other.op))
        return false;
  return true;
}

bool mlafix::mayBeOneTensor(KernelOp kernel, unsigned written, unsigned read) {
  auto a = dyn_cast<MemRefType>(kernel.getArgumentTypes()[written]);
  auto b = dyn_cast<MemRefType>(kernel.getArgumentTypes()[read]);
  return a && b && !kernel.isArgAbsent(written) && !kernel.isArgMany(read) &&
         kernel.getArgAccess(written) != "read" &&
         kernel.getArgAccess(read) == "read" &&
         a.getElementType() == b.getElementType() &&
         kernel.getArgDims(written) == kernel.getArgDims(read) &&
         kernel.getArgAttr(written, kSwizzleAttr) ==
             kernel.getArgAttr(read, kSwizzleAttr) &&
         mayAlias(kernel, written, read);
}

bool mlafix::isAliasPair(ArrayAttr aliases, int64_t a, int64_t b) {
  return llvm::any_of(aliases.getAsRange<ArrayAttr>(), [&](ArrayAttr pair) {
    int64_t x = cast<IntegerAttr>(pair[0]).getInt(),
            y = cast<IntegerAttr>(pair[1]).getInt();
    return (x == a && y == b) || (x == b && y == a);
  });
}
