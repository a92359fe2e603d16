//===- DistributeRagged.cpp - a ragged grid becomes a scan and a loop -*- C++
//-*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/DistributeGrid.h"
#include "lib/Transforms/LaneConflicts.h"
#include "lib/Transforms/RowAccess.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

namespace {
/// Scans the predicate of a ragged grid over a chunk of segments and shares the
/// selected rows out over the grid.
///
/// Each thread asks the predicate for kPerThread segments; one block-wide
/// reduction ends the chunk when none is selected. Otherwise the exclusive
/// prefix sums of the selected segments' lengths go to shared memory, and a row
/// number is turned into (segment, row) by a binary search. Lengths add up with
/// saturation: well-formed segments hold at most 2^31 - 1 rows together, and
/// malformed ones that overlap lose rows rather than bounds.
///
/// More segments than a chunk holds are asked for first, without their bounds
/// and with one reduction: most calls select none.
///
/// Scalars that only depend on indices are stored in a pass of their own, by
/// one thread each, a tile of rows and inner indices at a time: whichever of
/// them is contiguous in memory, whole sectors are written.
class RaggedScan {
public:
  RaggedScan(KernelOp kernel, RaggedForallOp grid)
      : kernel(kernel), grid(grid), layout(kernel.getLayoutAttr()),
        threads(layout.getThreads()), b(grid), loc(grid.getLoc()), x(b, loc) {}

  RowContext build();

private:
  // Every block scans all segments, and a multiprocessor starts a block every
  // 0.16 us: one block of two segments a thread took half the time of eight of
  // eight where nothing is selected (H200), and as long where all is.
  static constexpr int64_t kPerThread = 2;
  static constexpr int64_t kBlocksPerMultiprocessor = 1;
  // Segments a thread asks for at once where a chunk does not hold them all.
  static constexpr int64_t kAskedAtOnce = 8;
  // Rows of a tile of scalars: of four bytes, they fill 64.
  static constexpr int64_t kTileRows = 16;

  Value saturatingAdd(Value a, Value c) {
    return arith::MinUIOp::create(b, loc, x.add(a, c), x.i32(INT32_MAX));
  }
  Value allocShared(int64_t size) {
    auto space = gpu::AddressSpaceAttr::get(b.getContext(),
                                            gpu::AddressSpace::Workgroup);
    return memref::AllocaOp::create(
        b, loc, MemRefType::get({size}, b.getI32Type(), AffineMap(), space));
  }
  Value shuffleUp(Value value, int64_t distance) {
    return NVVM::ShflOp::create(b, loc, b.getI32Type(), x.i32(-1), value,
                                x.i32(distance), x.i32(0), NVVM::ShflKind::up,
                                UnitAttr());
  }
  /// Whether `flag` (i1) holds for a thread of the block.
  Value isAny(Value flag) {
    Value bits = arith::ExtUIOp::create(b, loc, b.getI32Type(), flag);
    Value any = NVVM::BarrierOp::create(
                    b, loc, TypeRange{b.getI32Type()}, Value(), Value(),
                    NVVM::BarrierReductionAttr::get(b.getContext(),
                                                    NVVM::BarrierReduction::OR),
                    bits)
                    .getRes();
    return x.compare(arith::CmpIPredicate::ne, any, x.i32(0));
  }
  Value segmentOf(Value base, Value position);
  Value isSelected(Value segment);
  std::pair<Value, Value> selectedRows(Value segment, Value segments);
  Value countSegments();
  Value askAll(Value segments);
  Value scan(Value sum, Value &total);
  Value search(Value number);
  void forRows(Value base, Value first, Value total, Value step,
               function_ref<void(ArrayRef<Value>)> body);
  void takeScalarStores();
  void storeScalars(Value base, Value total);
  void buildRows(Value base, Value total);
  void buildInner(Value first, int64_t step,
                  function_ref<void(ValueRange)> body);

  KernelOp kernel;
  RaggedForallOp grid;
  LayoutAttr layout;
  int64_t threads;
  OpBuilder b;
  Location loc;
  IndexBuilder x;
  Thread thread;
  Value warpId, laneId, prefix, shift, warpTotals;
  SmallVector<StoreOp> scalarStores;  // taken out of the body
  SmallVector<Operation *> scalarOps; // these, and what they need of it
};
} // namespace

/// The segment at `position` of the chunk: neighbouring threads read
/// neighbouring segments, so position t * kPerThread + k holds segment k *
/// threads + t.
Value RaggedScan::segmentOf(Value base, Value position) {
  Value perThread = x.constant(kPerThread);
  return x.add(base,
               x.add(x.mul(x.rem(position, perThread), x.constant(threads)),
                     x.div(position, perThread)));
}

/// Whether the predicate selects the segment, which exists.
Value RaggedScan::isSelected(Value segment) {
  IRMapping mapping;
  mapping.map(grid.getPredicate().getArgument(0), segment);
  for (Operation &op : grid.getPredicate().front().without_terminator())
    b.clone(op, mapping);
  auto yield = cast<YieldOp>(grid.getPredicate().front().getTerminator());
  return mapping.lookupOrDefault(yield.getValues()[0]);
}

/// Where a segment begins and the number of its rows, i32: 0 where it is past
/// the last one (then the last is looked at again: rather than a branch, all
/// loads are on the way at once), malformed or not selected.
std::pair<Value, Value> RaggedScan::selectedRows(Value segment,
                                                 Value segments) {
  Value known =
      arith::MinUIOp::create(b, loc, segment, x.sub(segments, x.constant(1)));
  Value start = loadBoundary(b, grid, known),
        end = loadBoundary(b, grid, x.add(known, x.constant(1)));
  Value selected = x.band(isSelected(known), x.ult(segment, segments));
  selected = selectWellFormed(b, grid, selected, start, end);
  return {start, x.select(selected, x.toI32(x.sub(end, start)), x.i32(0))};
}

/// An empty cu_seqlens has no segment, not 2^64 - 1.
Value RaggedScan::countSegments() {
  Value segments = x.sub(memref::DimOp::create(b, loc, grid.getCuSeqlens(), 0),
                         x.constant(1));
  Value none = x.compare(arith::CmpIPredicate::slt, segments, x.constant(0));
  return x.select(none, x.constant(0), segments);
}

/// The number of segments to scan: `segments`, or none where there are more
/// than a chunk holds and none of them is selected.
Value RaggedScan::askAll(Value segments) {
  Value isMany = x.compare(arith::CmpIPredicate::ugt, segments,
                           x.constant(threads * kPerThread));
  auto many = scf::IfOp::create(b, loc, TypeRange{b.getIndexType()}, isMany,
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(many.elseBlock());
  scf::YieldOp::create(b, loc, segments);
  b.setInsertionPointToStart(many.thenBlock());
  Value last = x.sub(segments, x.constant(1));
  Value none = arith::ConstantIntOp::create(b, loc, false, 1);
  auto loop = scf::ForOp::create(b, loc, x.toIndex(thread.id), segments,
                                 x.constant(threads * kAskedAtOnce), none);
  {
    OpBuilder::InsertionGuard inLoop(b);
    b.setInsertionPointToStart(loop.getBody());
    Value any = loop.getRegionIterArg(0);
    // The last one again rather than a branch: all loads are on the way at
    // once.
    for (int64_t k = 0; k < kAskedAtOnce; ++k) {
      Value segment = x.add(loop.getInductionVar(), x.constant(k * threads));
      segment = arith::MinUIOp::create(b, loc, segment, last);
      any = arith::OrIOp::create(b, loc, any, isSelected(segment));
    }
    scf::YieldOp::create(b, loc, any);
  }
  Value result = x.select(isAny(loop.getResult(0)), segments, x.constant(0));
  scf::YieldOp::create(b, loc, result);
  return many.getResult(0);
}

/// The exclusive prefix sum of `sum` over the block's threads.
Value RaggedScan::scan(Value sum, Value &total) {
  Value inclusive = sum;
  for (int64_t distance = 1; distance < 32; distance *= 2) {
    Value other = shuffleUp(inclusive, distance);
    Value has = x.compare(arith::CmpIPredicate::uge, laneId, x.i32(distance));
    inclusive = x.select(has, saturatingAdd(inclusive, other), inclusive);
  }
  Value before = x.select(x.compare(arith::CmpIPredicate::eq, laneId, x.i32(0)),
                          x.i32(0), shuffleUp(inclusive, 1));
  auto isLast = scf::IfOp::create(
      b, loc, x.compare(arith::CmpIPredicate::eq, laneId, x.i32(31)), false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(isLast.thenBlock()->getTerminator());
    memref::StoreOp::create(b, loc, inclusive, warpTotals,
                            ValueRange{x.toIndex(warpId)});
  }
  NVVM::BarrierOp::create(b, loc);
  total = x.i32(0);
  for (int64_t warp = 0; warp < threads / 32; ++warp) {
    Value warpTotal = memref::LoadOp::create(b, loc, warpTotals,
                                             ValueRange{x.constant(warp)});
    Value isBefore = x.ult(x.i32(warp), warpId);
    before = x.select(isBefore, saturatingAdd(before, warpTotal), before);
    total = saturatingAdd(total, warpTotal);
  }
  return before;
}

/// The position of the last prefix that is at most `number` (i32).
Value RaggedScan::search(Value number) {
  Value position = x.constant(0);
  for (int64_t step = threads * kPerThread / 2; step >= 1; step /= 2) {
    Value candidate = x.add(position, x.constant(step));
    Value start = memref::LoadOp::create(b, loc, prefix, ValueRange{candidate});
    position = x.select(x.compare(arith::CmpIPredicate::ule, start, number),
                        candidate, position);
  }
  return position;
}

/// Calls `body` with the segment and the row of each of the selected rows
/// `first`, first + step, … below `total` (i32, all). The search is left out
/// where a row is of the same segment as the one before.
void RaggedScan::forRows(Value base, Value first, Value total, Value step,
                         function_ref<void(ArrayRef<Value>)> body) {
  Value none = x.i32(0);
  auto loop =
      scf::ForOp::create(b, loc, x.toIndex(first), x.toIndex(total),
                         x.toIndex(step), ValueRange{x.constant(0), none});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = x.toI32(loop.getInductionVar());
  Value position = loop.getRegionIterArg(0), end = loop.getRegionIterArg(1);
  auto isNew = scf::IfOp::create(
      b, loc, TypeRange{b.getIndexType(), b.getI32Type()},
      x.compare(arith::CmpIPredicate::uge, number, end), true);
  b.setInsertionPointToStart(isNew.elseBlock());
  scf::YieldOp::create(b, loc, ValueRange{position, end});
  b.setInsertionPointToStart(isNew.thenBlock());
  Value found = search(number);
  // Where the next prefix is; past the last one, where the rows end.
  Value next = x.add(found, x.constant(1)),
        last = x.constant(threads * kPerThread - 1);
  Value foundEnd = x.select(
      x.compare(arith::CmpIPredicate::ugt, next, last), total,
      memref::LoadOp::create(
          b, loc, prefix,
          ValueRange{Value(arith::MinUIOp::create(b, loc, next, last))}));
  scf::YieldOp::create(b, loc, ValueRange{found, foundEnd});
  b.setInsertionPointToEnd(loop.getBody());
  position = isNew.getResult(0);
  Value row = x.add(memref::LoadOp::create(b, loc, shift, ValueRange{position}),
                    number);
  auto yield = scf::YieldOp::create(b, loc, isNew.getResults());
  b.setInsertionPoint(yield);
  body({segmentOf(base, position), x.toIndex(row)});
}

/// Calls `body` with the inner indices at the linear positions first, first +
/// step, …; `first` is below `step`.
void RaggedScan::buildInner(Value first, int64_t step,
                            function_ref<void(ValueRange)> body) {
  SmallVector<Value> extents = llvm::to_vector(grid.getInner());
  int64_t size = 1; // -1: not known
  for (Value extent : extents) {
    APInt value;
    bool isKnown = size >= 0 && matchPattern(extent, m_ConstantInt(&value));
    size = isKnown ? size * value.getSExtValue() : -1;
  }
  if (size < 0) {
    Value all = x.constant(1);
    for (Value extent : extents)
      all = x.mul(all, extent);
    return buildLoop(b, loc, first, all, x.constant(step), [&](Value position) {
      body(x.delinearize(position, extents));
    });
  }
  // A constant number of steps, so that LLVM can unroll them.
  buildLoop(b, loc, x.constant(0), x.constant(llvm::divideCeil(size, step)),
            x.constant(1), [&](Value k) {
              Value position = x.add(x.mul(k, x.constant(step)), first);
              if (size % step == 0)
                return body(x.delinearize(position, extents));
              auto exists = scf::IfOp::create(
                  b, loc, x.ult(position, x.constant(size)), false);
              OpBuilder::InsertionGuard guard(b);
              b.setInsertionPoint(exists.thenBlock()->getTerminator());
              body(x.delinearize(position, extents));
            });
}

/// Takes the stores of scalars out of the body, where nothing is read in it,
/// they depend on no row, and no row is stored where they may be.
void RaggedScan::takeScalarStores() {
  Block &body = grid.getBody().front();
  SmallVector<StoreOp> stores;
  SmallVector<LaneAccess> rows;
  for (Operation &op : body.without_terminator()) {
    auto store = dyn_cast<StoreOp>(op);
    if (!store && !isMemoryEffectFree(&op))
      return;
    if (!store)
      continue;
    if (isRowTile(store.getValue().getType()))
      rows.push_back(*getLaneAccess(store));
    else
      stores.push_back(store);
  }
  llvm::SetVector<Operation *> slice;
  for (StoreOp store : stores) {
    LaneAccess access = *getLaneAccess(store);
    // Two tensors that are written are never the same one.
    if (llvm::any_of(rows, [&](const LaneAccess &row) {
          return row.argument == access.argument;
        }))
      return;
    BackwardSliceOptions options;
    options.inclusive = true;
    options.filter = [&](Operation *op) { return op->getBlock() == &body; };
    (void)getBackwardSlice(store.getOperation(), &slice, options);
  }
  if (llvm::any_of(slice, [](Operation *op) {
        return llvm::any_of(op->getOperandTypes(),
                            [](Type type) { return isRowTile(type); });
      }))
    return;
  scalarStores = stores;
  for (Operation &op : body) // in their order
    if (slice.contains(&op))
      scalarOps.push_back(&op);
}

/// One thread a scalar: of a tile of rows by inner indices, the rows lie next
/// to each other. The last blocks begin, since the first have rows to do.
void RaggedScan::storeScalars(Value base, Value total) {
  int64_t tileInner = threads / kTileRows;
  Value blockId = NVVM::BlockIdXOp::create(b, loc, b.getI32Type());
  Value blocks = NVVM::GridDimXOp::create(b, loc, b.getI32Type());
  Value fromLast = x.sub(x.sub(blocks, x.i32(1)), blockId);
  Value tileRows = x.i32(kTileRows);
  Value first = x.add(x.mul(fromLast, tileRows), x.rem(thread.id, tileRows));
  Value firstInner = x.toIndex(x.div(thread.id, tileRows));
  forRows(base, first, total, x.mul(blocks, tileRows),
          [&](ArrayRef<Value> outer) {
            buildInner(firstInner, tileInner, [&](ValueRange inner) {
              IRMapping mapping;
              SmallVector<Value> indices(outer);
              llvm::append_range(indices, inner);
              mapping.map(grid.getBody().getArguments(), indices);
              for (Operation *op : scalarOps) {
                Operation *copy = b.clone(*op, mapping);
                auto store = dyn_cast<StoreOp>(copy);
                if (!store)
                  continue;
                Value target = store.getTarget();
                Value value =
                    narrow(b, loc, store.getValue(),
                           cast<MemRefType>(target.getType()).getElementType());
                writeIf(b, loc,
                        accessPredicate(b, loc, store.getPredicate(), target),
                        [&](OpBuilder &then) {
                          memref::StoreOp::create(then, loc, value, target,
                                                  store.getIndices());
                        });
                store.erase();
              }
            });
          });
}

/// The loop over the selected rows: a block takes as many at once as its lane
/// groups can hold with all their inner indices.
void RaggedScan::buildRows(Value base, Value total) {
  int64_t perRow = layout.getRows();
  int64_t size = 1; // of the inner indices, as far as that is known; else 0
  for (Value extent : grid.getInner()) {
    APInt value;
    bool isKnown = size && matchPattern(extent, m_ConstantInt(&value));
    size = isKnown ? size * std::min<int64_t>(value.getSExtValue(), perRow) : 0;
  }
  if (size)
    perRow = std::min<int64_t>(perRow, llvm::PowerOf2Ceil(size));
  int64_t rowsPerBlock = layout.getRows() / perRow;
  setGeometry(
      kernel,
      {{"kind", b.getStringAttr("ragged")},
       {"rows", describeExtent(grid.getRows())},
       {"inner", describeExtents(b.getContext(), grid.getInner())},
       {"rows_per_block", b.getI64IntegerAttr(rowsPerBlock)},
       {"threads", b.getI64IntegerAttr(threads)},
       {"blocks_per_sm", b.getI64IntegerAttr(kBlocksPerMultiprocessor)}});

  takeScalarStores();
  if (!scalarStores.empty())
    storeScalars(base, total);
  for (StoreOp store : scalarStores)
    store.erase();
  Value slot = x.div(thread.group, x.i32(perRow));
  Value firstInner = x.toIndex(x.rem(thread.group, x.i32(perRow)));
  Value blockId = NVVM::BlockIdXOp::create(b, loc, b.getI32Type());
  Value blocks = NVVM::GridDimXOp::create(b, loc, b.getI32Type());
  Value perBlock = x.i32(rowsPerBlock);
  thread.context.row = b.getInsertionBlock();
  if (llvm::all_of(grid.getBody().front().without_terminator(),
                   [](Operation &op) { return isMemoryEffectFree(&op); }))
    return; // scalars were all there was
  forRows(base, x.add(x.mul(blockId, perBlock), slot), total,
          x.mul(blocks, perBlock), [&](ArrayRef<Value> outer) {
            SmallVector<Value> indices(outer);
            buildInner(firstInner, perRow, [&](ValueRange inner) {
              llvm::append_range(indices, inner);
              thread.context.row = b.getInsertionBlock();
              inlineRow(b, grid.getBody().front(), indices);
            });
          });
}

RowContext RaggedScan::build() {
  thread = buildThread(b, loc, layout);
  laneId = x.band(thread.id, x.i32(31));
  warpId = x.div(thread.id, x.i32(32));
  prefix = allocShared(threads * kPerThread);
  shift = allocShared(threads * kPerThread);
  warpTotals = allocShared(threads / 32);
  Value tid = x.toIndex(thread.id);
  Value segments = countSegments();
  buildDependency(b, loc, kernel);

  buildLoop(
      b, loc, x.constant(0), askAll(segments), x.constant(threads * kPerThread),
      [&](Value base) {
        SmallVector<Value> starts, lengths;
        Value sum = x.i32(0);
        for (int64_t k = 0; k < kPerThread; ++k) {
          Value segment = x.add(base, x.add(tid, x.constant(k * threads)));
          auto [start, length] = selectedRows(segment, segments);
          starts.push_back(start);
          lengths.push_back(length);
          sum = saturatingAdd(sum, length);
        }
        auto chunk = scf::IfOp::create(
            b, loc, isAny(x.compare(arith::CmpIPredicate::ne, sum, x.i32(0))),
            false);
        b.setInsertionPoint(chunk.thenBlock()->getTerminator());
        Value total;
        Value before = scan(sum, total);
        Value first = x.mul(tid, x.constant(kPerThread));
        for (auto [k, length] : llvm::enumerate(lengths)) {
          SmallVector<Value> position = {x.add(first, x.constant(k))};
          memref::StoreOp::create(b, loc, before, prefix, position);
          // What makes a number a row. Of rows that count, it fits.
          memref::StoreOp::create(b, loc, x.sub(x.toI32(starts[k]), before),
                                  shift, position);
          before = saturatingAdd(before, length);
        }
        NVVM::BarrierOp::create(b, loc);
        buildRows(base, total);
        NVVM::BarrierOp::create(
            b, loc); // the next chunk overwrites the prefix sums
      });
  grid.erase();
  return thread.context;
}

RowContext mlafix::distributeRaggedGPU(KernelOp kernel, RaggedForallOp grid) {
  return RaggedScan(kernel, grid).build();
}
