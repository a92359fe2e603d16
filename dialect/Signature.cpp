//===- Signature.cpp - what a host must know of a kernel -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Mlafix.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlafix;

namespace {
/// One access of a kernel to one of its arguments.
struct Access {
  Operation *op;
  SmallVector<Value> indices;
  bool isWrite;
};
} // namespace

/// Every access to each argument, in program order.
static SmallVector<SmallVector<Access>> collectAccesses(KernelOp kernel) {
  SmallVector<SmallVector<Access>> accesses(kernel.getNumArguments());
  auto add = [&](Operation *op, Value memref, ValueRange indices,
                 bool isWrite) {
    if (memref)
      if (BlockArgument argument = getKernelArgument(memref))
        accesses[argument.getArgNumber()].push_back(
            {op, llvm::to_vector(indices), isWrite});
  };
  kernel.walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op))
      add(op, load.getSource(), load.getIndices(), false);
    if (auto store = dyn_cast<StoreOp>(op))
      add(op, store.getTarget(), store.getIndices(), true);
    if (auto load = dyn_cast<LoadStateOp>(op)) {
      add(op, load.getOut(), load.getOutIndices(), false);
      add(op, load.getLse(), load.getLseIndices(), false);
    }
    if (auto store = dyn_cast<StoreStateOp>(op)) {
      add(op, store.getOut(), store.getOutIndices(), true);
      add(op, store.getLse(), store.getLseIndices(), true);
    }
    if (auto grid = dyn_cast<RaggedForallOp>(op))
      add(op, grid.getCuSeqlens(), {}, false);
  });
  return accesses;
}

/// The innermost loop of the body that holds `op`, or null.
static Operation *getLoop(Operation *op) {
  for (Operation *parent = op->getParentOp();
       parent && !isa<ForallOp, RaggedForallOp, KernelOp>(parent);
       parent = parent->getParentOp())
    if (isa<LoopLikeOpInterface>(parent))
      return parent;
  return nullptr;
}

/// The grid indices that name a row: all of a dense grid's, all but the segment
/// of a ragged one's. An index that is always 0 names nothing.
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

/// Whether `read` may run after `write`, both of one row and in no loop. The
/// branches of an `scf.if` exclude each other.
static bool mayFollow(Operation *write, Operation *read) {
  for (Operation *op = write; op; op = op->getParentOp())
    if (Operation *other = op->getBlock()->findAncestorOpInBlock(*read))
      return other == op ? !isa<scf::IfOp>(op) : op->isBeforeInBlock(other);
  return true;
}

/// Whether a row may be read through one argument and written through another
/// that is the same tensor (N11): every access of both has the same indices,
/// these tell every row of the grid from every other, and no read follows a
/// write.
static bool mayAlias(KernelOp kernel, ArrayRef<Access> written,
                     ArrayRef<Access> read) {
  if (written.empty() || read.empty())
    return true;
  const Access &first = written.front();
  for (Value index : getRowIndices(kernel))
    if (!llvm::is_contained(first.indices, index))
      return false;
  for (const Access &access : llvm::concat<const Access>(written, read))
    if (access.indices != first.indices || getLoop(access.op))
      return false;
  // The first argument may be read, too, before or after the other.
  for (const Access &access : written)
    for (const Access &other : read)
      if (access.isWrite && mayFollow(access.op, other.op))
        return false;
  return true;
}

static DictionaryAttr describeTensor(KernelOp kernel, unsigned index,
                                     MemRefType type) {
  Builder b(kernel.getContext());
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)type.getStridesAndOffset(strides, offset);
  auto numbers = [&](ArrayRef<int64_t> values) {
    return b.getArrayAttr(
        llvm::map_to_vector(values, [&](int64_t value) -> Attribute {
          return b.getI64IntegerAttr(ShapedType::isDynamic(value) ? -1 : value);
        }));
  };
  return b.getDictionaryAttr({
      b.getNamedAttr("name", b.getStringAttr(kernel.getArgName(index))),
      b.getNamedAttr("kind", b.getStringAttr("tensor")),
      b.getNamedAttr("dtype",
                     b.getStringAttr(getDTypeName(type.getElementType()))),
      b.getNamedAttr("dims", kernel.getArgDims(index)),
      b.getNamedAttr("shape", numbers(type.getShape())),
      b.getNamedAttr("strides", numbers(strides)),
      b.getNamedAttr("access", b.getStringAttr(kernel.getArgAccess(index))),
      b.getNamedAttr("optional", b.getBoolAttr(kernel.isArgOptional(index))),
  });
}

static DictionaryAttr describeScalar(KernelOp kernel, unsigned index,
                                     Type type) {
  Builder b(kernel.getContext());
  SmallVector<NamedAttribute> fields = {
      b.getNamedAttr("name", b.getStringAttr(kernel.getArgName(index))),
      b.getNamedAttr("kind", b.getStringAttr("scalar")),
      b.getNamedAttr("dtype", b.getStringAttr(getDTypeName(type))),
  };
  if (Attribute bound = kernel.getArgAttr(index, kAtMostAttr))
    fields.push_back(b.getNamedAttr("at_most", bound));
  return b.getDictionaryAttr(fields);
}

DictionaryAttr mlafix::getSignature(KernelOp kernel) {
  Builder b(kernel.getContext());
  SmallVector<Attribute> args, aliases;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto memref = dyn_cast<MemRefType>(type);
    args.push_back(memref ? describeTensor(kernel, index, memref)
                          : describeScalar(kernel, index, type));
  }

  SmallVector<SmallVector<Access>> accesses = collectAccesses(kernel);
  for (unsigned i = 0, n = kernel.getNumArguments(); i < n; ++i) {
    for (unsigned j = 0; j < n; ++j) {
      auto written = dyn_cast<MemRefType>(kernel.getArgumentTypes()[i]);
      auto read = dyn_cast<MemRefType>(kernel.getArgumentTypes()[j]);
      if (!written || !read || kernel.isArgAbsent(i) ||
          kernel.getArgAccess(i) == "read" ||
          kernel.getArgAccess(j) != "read" ||
          written.getElementType() != read.getElementType() ||
          kernel.getArgDims(i) != kernel.getArgDims(j) ||
          !mayAlias(kernel, accesses[i], accesses[j]))
        continue;
      aliases.push_back(
          b.getArrayAttr({b.getI64IntegerAttr(i), b.getI64IntegerAttr(j)}));
    }
  }
  DictionaryAttr bindings =
      kernel.getBindings().value_or(b.getDictionaryAttr({}));
  SmallVector<NamedAttribute> fields = {
      b.getNamedAttr("name", kernel.getSymNameAttr()),
      b.getNamedAttr("bindings", bindings),
      b.getNamedAttr("args", b.getArrayAttr(args)),
      b.getNamedAttr("aliases", b.getArrayAttr(aliases)),
  };
  if (DictionaryAttr defaults = kernel.getDefaults().value_or(DictionaryAttr()))
    fields.push_back(b.getNamedAttr("defaults", defaults));
  return b.getDictionaryAttr(fields);
}
