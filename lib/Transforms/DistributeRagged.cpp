//===- DistributeRagged.cpp - a ragged grid becomes a scan and a loop -*- C++
//-*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/DistributeGrid.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
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
class RaggedScan {
public:
  RaggedScan(KernelOp kernel, RaggedForallOp grid)
      : kernel(kernel), grid(grid), layout(kernel.getLayoutAttr()),
        threads(layout.getThreads()), b(grid), loc(grid.getLoc()), x(b, loc) {}

  RowContext build();

private:
  // Every block scans all segments, and a multiprocessor starts a block every
  // 0.2 us: one block of two segments a thread took half the time of eight of
  // eight where nothing is selected (H200), and as long where all is.
  static constexpr int64_t kPerThread = 2;
  static constexpr int64_t kBlocksPerMultiprocessor = 1;

  Value loadBoundary(Value segment) {
    Value value = memref::LoadOp::create(b, loc, grid.getCuSeqlens(), segment);
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
  }
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
  Value segmentOf(Value base, Value position);
  Value selectedLength(Value segment, Value segments);
  Value scan(Value sum, Value &total);
  void buildRows(Value base, Value total);

  KernelOp kernel;
  RaggedForallOp grid;
  LayoutAttr layout;
  int64_t threads;
  OpBuilder b;
  Location loc;
  IndexBuilder x;
  Thread thread;
  Value warpId, laneId, prefix, warpTotals;
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

/// The number of rows of a segment, i32: 0 where it is past the last one,
/// malformed or not selected.
Value RaggedScan::selectedLength(Value segment, Value segments) {
  Type i32 = b.getI32Type();
  auto known =
      scf::IfOp::create(b, loc, TypeRange{i32}, x.ult(segment, segments),
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(known.elseBlock());
  scf::YieldOp::create(b, loc, x.i32(0));
  b.setInsertionPointToStart(known.thenBlock());
  Value start = loadBoundary(segment),
        end = loadBoundary(x.add(segment, x.constant(1)));
  IRMapping mapping;
  mapping.map(grid.getPredicate().getArgument(0), segment);
  for (Operation &op : grid.getPredicate().front().without_terminator())
    b.clone(op, mapping);
  auto yield = cast<YieldOp>(grid.getPredicate().front().getTerminator());
  Value selected = mapping.lookupOrDefault(yield.getValues()[0]);
  // 0 <= start <= end <= rows; unsigned, a negative boundary is larger than any
  // number of rows.
  selected = x.band(selected, x.compare(arith::CmpIPredicate::ule, start, end));
  selected = x.band(selected,
                    x.compare(arith::CmpIPredicate::ule, end, grid.getRows()));
  Value length = x.select(selected, x.toI32(x.sub(end, start)), x.i32(0));
  scf::YieldOp::create(b, loc, length);
  return known.getResult(0);
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

/// The loop over the selected rows: a block takes as many at once as its lane
/// groups can hold with all their inner indices.
void RaggedScan::buildRows(Value base, Value total) {
  Value inner = x.constant(1);
  for (Value extent : grid.getInner())
    inner = x.mul(inner, extent);
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

  Value group = x.toIndex(thread.group);
  Value slot = x.div(group, x.constant(perRow)),
        firstInner = x.rem(group, x.constant(perRow));
  Value blockId = x.toIndex(NVVM::BlockIdXOp::create(b, loc, b.getI32Type()));
  Value blocks = x.toIndex(NVVM::GridDimXOp::create(b, loc, b.getI32Type()));
  Value perBlock = x.constant(rowsPerBlock);
  buildLoop(
      b, loc, x.add(x.mul(blockId, perBlock), slot), x.toIndex(total),
      x.mul(blocks, perBlock), [&](Value number) {
        // The last position whose prefix is at most `number`.
        Value number32 = x.toI32(number), position = x.constant(0);
        for (int64_t step = threads * kPerThread / 2; step >= 1; step /= 2) {
          Value candidate = x.add(position, x.constant(step));
          Value start =
              memref::LoadOp::create(b, loc, prefix, ValueRange{candidate});
          position =
              x.select(x.compare(arith::CmpIPredicate::ule, start, number32),
                       candidate, position);
        }
        Value segment = segmentOf(base, position);
        Value before =
            memref::LoadOp::create(b, loc, prefix, ValueRange{position});
        Value row =
            x.add(loadBoundary(segment), x.toIndex(x.sub(number32, before)));
        SmallVector<Value> indices = {segment, row};
        if (grid.getInner().empty()) {
          thread.context.row = b.getInsertionBlock();
          inlineRow(b, grid.getBody().front(), indices);
          return;
        }
        buildLoop(
            b, loc, firstInner, inner, x.constant(perRow), [&](Value position) {
              llvm::append_range(
                  indices,
                  x.delinearize(position, llvm::to_vector(grid.getInner())));
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
  warpTotals = allocShared(threads / 32);
  Value tid = x.toIndex(thread.id);
  Value segments = x.sub(memref::DimOp::create(b, loc, grid.getCuSeqlens(), 0),
                         x.constant(1));
  // An empty cu_seqlens has no segment, not 2^64 - 1.
  Value none = x.compare(arith::CmpIPredicate::slt, segments, x.constant(0));
  segments = x.select(none, x.constant(0), segments);
  buildDependency(b, loc, kernel);

  buildLoop(
      b, loc, x.constant(0), segments, x.constant(threads * kPerThread),
      [&](Value base) {
        SmallVector<Value> lengths;
        Value sum = x.i32(0);
        for (int64_t k = 0; k < kPerThread; ++k) {
          Value segment = x.add(base, x.add(tid, x.constant(k * threads)));
          lengths.push_back(selectedLength(segment, segments));
          sum = saturatingAdd(sum, lengths.back());
        }
        Value some = arith::ExtUIOp::create(
            b, loc, b.getI32Type(),
            x.compare(arith::CmpIPredicate::ne, sum, x.i32(0)));
        Value any = NVVM::BarrierOp::create(
                        b, loc, TypeRange{b.getI32Type()}, Value(), Value(),
                        NVVM::BarrierReductionAttr::get(
                            b.getContext(), NVVM::BarrierReduction::OR),
                        some)
                        .getRes();
        auto chunk = scf::IfOp::create(
            b, loc, x.compare(arith::CmpIPredicate::ne, any, x.i32(0)), false);
        b.setInsertionPoint(chunk.thenBlock()->getTerminator());
        Value total;
        Value before = scan(sum, total);
        Value position = x.mul(tid, x.constant(kPerThread));
        for (auto [k, length] : llvm::enumerate(lengths)) {
          memref::StoreOp::create(b, loc, before, prefix,
                                  ValueRange{x.add(position, x.constant(k))});
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

/// Each call scans all segments and does those of their rows that lie in its
/// range.
RowContext mlafix::distributeRaggedCPU(KernelOp kernel, RaggedForallOp grid,
                                       Value begin, Value end) {
  OpBuilder b(grid);
  Location loc = grid.getLoc();
  IndexBuilder x(b, loc);
  setGeometry(kernel,
              {{"kind", b.getStringAttr("ragged")},
               {"rows", describeExtent(grid.getRows())},
               {"inner", describeExtents(b.getContext(), grid.getInner())},
               {"rows_per_block", b.getI64IntegerAttr(1)},
               {"threads", b.getI64IntegerAttr(1)},
               {"blocks_per_sm", b.getI64IntegerAttr(1)}});
  auto loadBoundary = [&](Value segment) -> Value {
    Value value = memref::LoadOp::create(b, loc, grid.getCuSeqlens(), segment);
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
  };
  Value one = x.constant(1);
  Value segments =
      x.sub(memref::DimOp::create(b, loc, grid.getCuSeqlens(), 0), one);
  buildLoop(b, loc, x.constant(0), segments, one, [&](Value segment) {
    Value first = loadBoundary(segment),
          last = loadBoundary(x.add(segment, one));
    inlineRow(b, grid.getPredicate().front(), segment);
    auto yield = cast<YieldOp>(grid.getPredicate().front().getTerminator());
    Value selected = yield.getValues()[0];
    selected =
        x.band(selected, x.compare(arith::CmpIPredicate::ule, first, last));
    selected = x.band(
        selected, x.compare(arith::CmpIPredicate::ule, last, grid.getRows()));
    Value from = arith::MaxSIOp::create(b, loc, first, begin);
    Value to =
        x.select(selected, arith::MinSIOp::create(b, loc, last, end), from);
    buildLoop(b, loc, from, to, one, [&](Value row) {
      SmallVector<Value> indices = {segment, row};
      std::function<void(size_t)> nest = [&](size_t depth) {
        if (depth == grid.getInner().size())
          return inlineRow(b, grid.getBody().front(), indices);
        buildLoop(b, loc, x.constant(0), grid.getInner()[depth], one,
                  [&](Value index) {
                    indices.push_back(index);
                    nest(depth + 1);
                  });
      };
      nest(0);
    });
  });
  grid.erase();
  RowContext context;
  context.layout = kernel.getLayoutAttr();
  return context;
}
