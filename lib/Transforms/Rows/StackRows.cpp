//===- StackRows.cpp - stack buffers for rows -----------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Rows/StackRows.h"
#include "lib/Transforms/Layout/LongRows.h"
#include "lib/Transforms/Remarks.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

static Value alloc(KernelOp kernel, Location loc, Type element, int64_t count) {
  OpBuilder b = OpBuilder::atBlockBegin(&kernel.getBody().front());
  return memref::AllocaOp::create(b, loc, MemRefType::get({count}, element));
}

Value mlafix::allocBuffer(KernelOp kernel, Type element, int64_t count) {
  return alloc(kernel, kernel.getLoc(), element, count);
}

Value mlafix::allocRow(KernelOp kernel, Value row) {
  LayoutAttr layout = kernel.getLayoutAttr();
  DimAttr dim = getTileDim(row.getType());
  return alloc(
      kernel, row.getLoc(), getElementTypeOrSelf(row.getType()),
      llvm::alignTo(layout.packsFor(dim), countPacksAtOnce(kernel, dim)) *
          layout.packFor(dim));
}

LogicalResult mlafix::verifyBuffers(KernelOp kernel) {
  MachineModel machine = getMachine(kernel);
  int64_t most =
      isGPU(getTarget(kernel)) ? machine.localBytes : machine.stackBytes;
  int64_t all = 0, largest = 0;
  memref::AllocaOp row;
  kernel.walk([&](memref::AllocaOp buffer) {
    MemRefType type = buffer.getType();
    if (type.getMemorySpace()) // in shared memory, not on the stack
      return;
    int64_t bytes =
        type.getNumElements() * getDTypeBytes(type.getElementType());
    all += bytes;
    if (bytes > largest) {
      largest = bytes;
      row = buffer;
    }
  });
  if (all && isGPU(getTarget(kernel)))
    remark::missed(kernel.getLoc(),
                   nameRemark("local-memory", "mlafix-loop-over-packs", kernel))
        << remark::add("a lane walks its packs of a row in loops, and keeps up "
                       "to {0} of rows and partial results in local memory",
                       count(all, "byte"))
        << remark::metric(kRowBytes, all * kernel.getLayoutAttr().getLanes());
  if (all <= most)
    return success();
  return emitError(row.getLoc())
         << "expected at most " << most << " bytes of rows per thread, got "
         << all << " (" << largest << " here): a row of "
         << row.getType().getNumElements()
         << " elements is kept across a loop or a branch, or because its "
            "memory is written before its last use; shorten the rows, or let "
            "another kernel write them to a tensor first";
}
