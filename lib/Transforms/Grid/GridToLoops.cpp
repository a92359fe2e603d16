//===- GridToLoops.cpp - lower a grid to loops over rows ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Grid/RowRange.h"
#include "lib/Transforms/Grid/Strategies.h"
#include "lib/Transforms/GridLowering.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <functional>

using namespace mlir;
using namespace mlafix;

/// Lowers a ragged grid. Each call scans all segments and processes those of
/// their rows that are in the range of the call.
static void raggedToLoops(KernelOp kernel, RaggedForallOp grid) {
  RowRange range = addRowRange(kernel);
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
    Value from = arith::MaxSIOp::create(b, loc, first, range.begin);
    Value to = x.select(selected,
                        arith::MinSIOp::create(b, loc, last, range.end), from);
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
}

void mlafix::lowerToLoops(KernelOp kernel, Operation *grid) {
  if (auto ragged = dyn_cast<RaggedForallOp>(grid))
    return raggedToLoops(kernel, ragged);
  auto forall = cast<ForallOp>(grid);
  RowRange range = addRowRange(kernel);
  setRangeGeometry(kernel, forall, /*rows=*/1);
  buildRowLoop(forall, range);
}
