//===- RowRange.cpp - the rows that one call processes --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Grid/RowRange.h"
#include "lib/Transforms/GridLowering.h"
#include "lib/Transforms/IndexBuilder.h"

using namespace mlir;
using namespace mlafix;

RowRange mlafix::addRowRange(KernelOp kernel) {
  Type index = IndexType::get(kernel.getContext());
  Value begin = addArgument(kernel, "begin", index);
  return {begin, addArgument(kernel, "end", index)};
}

void mlafix::setRangeGeometry(KernelOp kernel, ForallOp forall, int64_t rows) {
  kernel.setGeometryAttr(CpuGeometryAttr::get(
      kernel.getContext(), /*isRagged=*/false,
      describeExtents(forall.getExtents()), /*rowsPerBlock=*/rows));
}

void mlafix::buildRowLoop(ForallOp forall, RowRange range) {
  OpBuilder b(forall);
  Location loc = forall.getLoc();
  IndexBuilder x(b, loc);
  buildLoop(b, loc, range.begin, range.end, x.constant(1), [&](Value row) {
    inlineRow(b, forall.getBody().front(),
              x.delinearize(row, llvm::to_vector(forall.getExtents())));
  });
  forall.erase();
}
