//===- DistributeRagged.cpp - a ragged grid becomes loops -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/DistributeGrid.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <functional>

using namespace mlir;
using namespace mlafix;

/// Each call scans all segments and does those of their rows that lie in its
/// range.
RowContext mlafix::distributeRaggedCPU(KernelOp kernel, RaggedForallOp grid,
                                       Value begin, Value end) {
  OpBuilder b(grid);
  Location loc = grid.getLoc();
  IndexBuilder x(b, loc);
  SmallVector<ExtentAttr> extents = {describeExtent(grid.getRows())};
  llvm::append_range(extents, describeExtents(grid.getInner()));
  kernel.setGeometryAttr(CpuGeometryAttr::get(b.getContext(), /*isRagged=*/true,
                                              extents, /*rowsPerBlock=*/1));
  Value one = x.constant(1);
  Value segments =
      x.sub(memref::DimOp::create(b, loc, grid.getCuSeqlens(), 0), one);
  buildLoop(b, loc, x.constant(0), segments, one, [&](Value segment) {
    Value first = loadBoundary(b, grid, segment),
          last = loadBoundary(b, grid, x.add(segment, one));
    inlineRow(b, grid.getPredicate().front(), segment);
    auto yield = cast<YieldOp>(grid.getPredicate().front().getTerminator());
    Value selected =
        selectWellFormed(b, grid, yield.getValues()[0], first, last);
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
