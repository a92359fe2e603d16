//===- RowOrder.cpp - order of rows, prefetches of scalars ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Grid/RowOrder.h"
#include "dialect/Guards.h"
#include "dialect/MemoryAccess.h"
#include "dialect/MlafixThread.h"
#include "dialect/Plan.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/ThreadOps.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlafix;

/// Builds the stride of a tensor along `dim`, as an index.
static Value buildStride(OpBuilder &b, Location loc, Value memref,
                         unsigned dim) {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
  return getValueOrCreateConstantIndexOp(
      b, loc, metadata.getConstifiedMixedStrides()[dim]);
}

/// Returns true if `access` is to a scalar of a single tensor with strides.
static bool isScalar(KernelOp kernel, const MemoryAccess &access) {
  BlockArgument argument = access.getArgument();
  return argument && !access.isRow && !isSwizzled(access.memref) &&
         !kernel.isArgMany(argument.getArgNumber());
}

/// Returns true if the grid's first index addresses the last dim of `access`,
/// as with an lse of [H, n] in a grid of (n, H). Scalars of one head's tokens
/// are then adjacent, but a block has the heads of one token. Only plain rows
/// are considered: if rows are reduced or converted, another order costs more
/// than it gains.
static bool isTransposed(KernelOp kernel, Block &body,
                         const MemoryAccess &access) {
  return kernel.getPlanAttr().has(PlanField::PlainRows) &&
         isScalar(kernel, access) && body.getNumArguments() >= 2 &&
         !access.indices.empty() &&
         access.indices.back() == body.getArguments().front() &&
         llvm::is_contained(access.indices.drop_back(),
                            body.getArguments().back());
}

std::optional<MemoryAccess> mlafix::findTransposed(KernelOp kernel,
                                                   ForallOp forall) {
  Block &body = forall.getBody().front();
  if (kernel.isCollective())
    return std::nullopt;
  SmallVector<MemoryAccess> accesses = collectAccesses(forall);
  // Rows with unknown strides keep their order, since another order would put
  // even more memory between consecutive rows.
  if (llvm::any_of(accesses, [&](const MemoryAccess &access) {
        return access.isRow && hasUnknownStride(kernel, access.memref);
      }))
    return std::nullopt;
  for (const MemoryAccess &access : accesses)
    if (isTransposed(kernel, body, access))
      return access;
  return std::nullopt;
}

Value mlafix::buildIsTransposed(OpBuilder &b, KernelOp kernel,
                                ForallOp forall) {
  std::optional<MemoryAccess> access = findTransposed(kernel, forall);
  if (!access)
    return {};
  IndexBuilder x(b, forall.getLoc());
  Value stride = buildStride(b, forall.getLoc(), access->memref,
                             access->indices.size() - 1);
  return x.compare(arith::CmpIPredicate::eq, stride, x.constant(1));
}

SetVector<Value> mlafix::getRowConditions(ForallOp forall) {
  SetVector<Value> conditions;
  forall.walk([&](StoreOp store) {
    if (isRowTile(store.getValue().getType()))
      if (auto branch = store->getParentOfType<scf::IfOp>())
        conditions.insert(branch.getCondition());
  });
  return conditions;
}

/// Returns true if a tensor is known to fit into one cache line. All blocks
/// load this line together, so a prefetch gains nothing.
static bool isOneLine(MemRefType type) {
  return type.hasStaticShape() &&
         type.getNumElements() * type.getElementTypeBitWidth() <=
             8 * limits::tableLineBytes;
}

SetVector<BlockArgument> mlafix::collectTables(KernelOp kernel,
                                               ForallOp forall) {
  SetVector<BlockArgument> tables;
  SmallVector<MemoryAccess> accesses = collectAccesses(forall);
  if (llvm::none_of(accesses, [](const MemoryAccess &access) {
        return access.isRow && !access.isWrite;
      }))
    return tables;
  Block &body = forall.getBody().front();
  const bool isGrouped = kernel.getLayoutAttr().isGrouped();
  for (const MemoryAccess &access : accesses) {
    auto type = cast<MemRefType>(access.memref.getType());
    bool gains = isGrouped || type.getElementType().isInteger() ||
                 isTransposed(kernel, body, access);
    if (gains && isScalar(kernel, access) && !access.isWrite &&
        !isOneLine(type))
      tables.insert(access.getArgument());
  }
  tables.remove_if([&](BlockArgument table) {
    return llvm::any_of(accesses, [&](const MemoryAccess &access) {
      return access.getArgument() == table && (access.isRow || access.isWrite);
    });
  });
  return tables;
}

/// Prefetches line `line` (i32) of `table` if the tensor has that many lines.
static void prefetchLine(OpBuilder &b, KernelOp kernel, BlockArgument table,
                         Value line) {
  Location loc = kernel.getLoc();
  IndexBuilder x(b, loc);
  auto type = cast<MemRefType>(table.getType());
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  Value lines = arith::TruncIOp::create(
      b, loc, b.getI32Type(),
      TableLinesOp::create(b, loc, b.getI64Type(), table));
  Value exists = x.ult(line, lines);
  if (kernel.isArgOptional(table.getArgNumber()))
    exists = x.band(exists, PresentOp::create(b, loc, table));
  auto branch = scf::IfOp::create(b, loc, exists, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  SmallVector<Value> indices(type.getRank(), x.constant(0));
  indices.back() =
      x.mul(x.toIndex(line), x.constant(limits::tableLineBytes / bytes));
  memref::PrefetchOp::create(b, loc, table, indices, /*isWrite=*/false,
                             /*localityHint=*/2, /*isDataCache=*/true);
}

void mlafix::prefetchTables(OpBuilder &b, KernelOp kernel, ForallOp forall) {
  if (!kernel.getPlanAttr().has(PlanField::EarlyTables))
    return;
  Location loc = forall.getLoc();
  IndexBuilder x(b, loc);
  // In layouts of lane groups there may be fewer blocks than a tensor has
  // lines, so each thread of the first warp prefetches one line.
  bool isGrouped = kernel.getLayoutAttr().isGrouped();
  Value thread = buildThreadId(b, loc);
  Value isFirst = x.ult(thread, x.i32(isGrouped ? limits::warpThreads : 1));
  auto branch = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  Value line = buildBlockId(b, loc);
  if (isGrouped)
    line = x.add(x.mul(thread, buildGridSize(b, loc)), line);
  for (BlockArgument table : collectTables(kernel, forall))
    prefetchLine(b, kernel, table, line);
}
