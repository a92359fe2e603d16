//===- ControlFlow.cpp - grids, loops, branches ---------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Frontend/BuilderImpl.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlafix;

using Impl = KernelBuilder::Impl;
using Frame = Impl::Frame;

bool Impl::closing(ArrayRef<Frame::Kind> kinds, const char *what,
                   const SourceLocation &location) {
  if (!finished && llvm::is_contained(kinds, frames.back().kind))
    return true;
  fail(location) << "expected " << what << " to end here, got another region";
  return false;
}

/// Values that leave a region must be scalars, rows or states.
static bool checkCarried(Impl &impl, const KernelBuilder::Values &values,
                         const char *what, const SourceLocation &location) {
  if (!impl.checkVisible(values, what, location))
    return false;
  for (KernelBuilder::Value value : values) {
    ValueType type = impl.type(value);
    if (type.kind == ValueType::Kind::Tensor || type.dtype == "u8") {
      impl.fail(location) << "expected scalars, rows or states for the " << what
                          << ", got " << type.str();
      return false;
    }
  }
  return true;
}

Type Impl::joinTypes(Type a, Type b) {
  auto state = dyn_cast<StateType>(a), other = dyn_cast<StateType>(b);
  if (a == b || !state || !other)
    return a == b ? a : Type();
  StateType joined = state.withSink(true);
  return other.withSink(true) == joined ? joined : Type();
}

mlir::Value Impl::widen(mlir::Value value, Type type, Location loc) {
  return value.getType() == type
             ? value
             : MergeOp::create(builder, loc, type, value).getResult();
}

/// Whether `values` have the types of `expected`, or ones that can be made into
/// them; an error if not.
static bool checkTypes(Impl &impl, const KernelBuilder::Values &values,
                       TypeRange expected, const char *what,
                       const SourceLocation &location) {
  if (values.size() != expected.size()) {
    impl.fail(location) << "expected " << expected.size() << " values for the "
                        << what << ", got " << values.size();
    return false;
  }
  for (auto [value, type] : llvm::zip(values, expected))
    if (Impl::joinTypes(impl.get(value).getType(), type) != type) {
      impl.fail(location) << "expected the same type for the " << what
                          << " as before, got " << impl.spell(value);
      return false;
    }
  return true;
}

/// Yields `values` as ones of `types`.
static void buildYield(Impl &impl, const KernelBuilder::Values &values,
                       TypeRange types, Location loc) {
  SmallVector<mlir::Value> yielded;
  for (auto [value, type] : llvm::zip(values, types))
    yielded.push_back(impl.widen(impl.get(value), type, loc));
  scf::YieldOp::create(impl.builder, loc, yielded);
}

//===----------------------------------------------------------------------===//
// Grids
//===----------------------------------------------------------------------===//

static bool checkExtents(Impl &impl, const KernelBuilder::Values &values,
                         const SourceLocation &location) {
  if (!impl.checkVisible(values, "extents", location))
    return false;
  for (KernelBuilder::Value value : values)
    if (!impl.get(value).getType().isIndex()) {
      impl.fail(location) << "expected extents of type index, got "
                          << impl.spell(value);
      return false;
    }
  return true;
}

/// A region of one block with `count` indices and a yield.
static Block *addGridRegion(Impl &impl, Region &region, size_t count,
                            Location loc) {
  Block *block = &region.emplaceBlock();
  for (size_t i = 0; i < count; ++i)
    block->addArgument(impl.builder.getIndexType(), loc);
  return block;
}

KernelBuilder::Values
KernelBuilder::beginForall(const Values &extents,
                           const SourceLocation &location) {
  if (!impl->checkOpen(location, /*inGrid=*/false) ||
      !checkExtents(*impl, extents, location))
    return {};
  if (impl->grid) {
    impl->fail(location) << "expected one grid in a kernel, got a second";
    return {};
  }
  if (extents.empty()) {
    impl->fail(location) << "expected at least one extent, got none";
    return {};
  }
  Location loc = impl->at(location);
  OperationState state(loc, ForallOp::getOperationName());
  state.addOperands(impl->getAll(extents));
  Region *body = state.addRegion();
  Operation *grid = impl->builder.create(state);
  (void)body;
  Block *block = addGridRegion(*impl, grid->getRegion(0), extents.size(), loc);
  impl->builder.setInsertionPointToEnd(block);
  YieldOp::create(impl->builder, loc);
  if (failed(verify(grid, /*verifyRecursively=*/false))) {
    impl->builder.setInsertionPointAfter(grid);
    grid->erase();
    return {};
  }
  impl->grid = grid;
  impl->frames.push_back({Frame::Grid, grid});
  impl->builder.setInsertionPoint(block->getTerminator());
  return impl->wrapAll(block->getArguments());
}

KernelBuilder::Value
KernelBuilder::beginRaggedForall(Value cuSeqlens, Value rows,
                                 const Values &inner,
                                 const SourceLocation &location) {
  Values extents = inner;
  extents.insert(extents.begin(), rows);
  if (!impl->checkOpen(location, /*inGrid=*/false) ||
      !impl->checkTensor(cuSeqlens, "cu_seqlens", location) ||
      !checkExtents(*impl, extents, location))
    return {};
  if (impl->grid) {
    impl->fail(location) << "expected one grid in a kernel, got a second";
    return {};
  }
  Location loc = impl->at(location);
  OperationState state(loc, RaggedForallOp::getOperationName());
  state.addOperands(impl->get(cuSeqlens));
  state.addOperands(impl->getAll(extents));
  state.addRegion();
  state.addRegion();
  Operation *grid = impl->builder.create(state);
  Block *predicate = addGridRegion(*impl, grid->getRegion(0), 1, loc);
  Block *body =
      addGridRegion(*impl, grid->getRegion(1), 1 + extents.size(), loc);
  impl->builder.setInsertionPointToEnd(body);
  YieldOp::create(impl->builder, loc);
  impl->grid = grid;
  impl->frames.push_back({Frame::Predicate, grid});
  impl->builder.setInsertionPointToEnd(predicate);
  return impl->wrap(predicate->getArgument(0));
}

KernelBuilder::Values
KernelBuilder::beginRaggedBody(Value predicate,
                               const SourceLocation &location) {
  if (!impl->closing(Frame::Predicate, "the predicate of a grid", location) ||
      !impl->checkCondition(predicate, "predicate", location))
    return {};
  YieldOp::create(impl->builder, impl->at(location), impl->get(predicate));
  Operation *grid = impl->frames.back().op;
  impl->frames.back().kind = Frame::Grid;
  Block *body = &grid->getRegion(1).front();
  // The grid as a whole is what can be wrong now: its operands, and what the
  // predicate does.
  if (failed(verify(grid, /*verifyRecursively=*/true)))
    return {};
  impl->builder.setInsertionPoint(body->getTerminator());
  return impl->wrapAll(body->getArguments());
}

bool KernelBuilder::endGrid(const SourceLocation &location) {
  if (!impl->closing(Frame::Grid, "a grid", location))
    return false;
  Operation *grid = impl->frames.back().op;
  impl->frames.pop_back();
  impl->builder.setInsertionPointAfter(grid);
  return true;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

KernelBuilder::Values KernelBuilder::beginFor(Value lower, Value upper,
                                              Value step, const Values &initial,
                                              const SourceLocation &location) {
  if (!impl->checkOpen(location) ||
      !impl->checkVisible({lower, upper, step}, "bounds of a loop", location) ||
      !checkCarried(*impl, initial, "values of a loop", location))
    return {};
  Type type = impl->get(lower).getType();
  if (!type.isIndex() && !type.isInteger(32) && !type.isInteger(64)) {
    impl->fail(location) << "expected index, i32 or i64 for the bounds of a "
                            "loop, got "
                         << impl->spell(lower);
    return {};
  }
  for (Value bound : {upper, step})
    if (impl->get(bound).getType() != type) {
      impl->fail(location) << "expected one type for the bounds of a loop, got "
                           << impl->spell(lower) << " and "
                           << impl->spell(bound);
      return {};
    }
  Location loc = impl->at(location);
  auto loop =
      scf::ForOp::create(impl->builder, loc, impl->get(lower), impl->get(upper),
                         impl->get(step), impl->getAll(initial),
                         [](OpBuilder &, Location, mlir::Value, ValueRange) {
                           // The body, and its end, come later.
                         });
  impl->frames.push_back({Frame::For, loop});
  impl->builder.setInsertionPointToEnd(loop.getBody());
  return impl->wrapAll(loop.getBody()->getArguments());
}

bool KernelBuilder::endFor(const Values &next, Values &results,
                           const SourceLocation &location) {
  if (!impl->closing(Frame::For, "a loop", location) ||
      !checkCarried(*impl, next, "values of a loop", location))
    return false;
  auto loop = cast<scf::ForOp>(impl->frames.back().op);
  if (!checkTypes(*impl, next, loop.getResultTypes(), "values of a loop",
                  location))
    return false;
  buildYield(*impl, next, loop.getResultTypes(), impl->at(location));
  impl->frames.pop_back();
  impl->builder.setInsertionPointAfter(loop);
  results = impl->wrapAll(loop.getResults());
  return true;
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

bool KernelBuilder::beginIf(Value condition, const SourceLocation &location) {
  if (!impl->checkOpen(location) ||
      !impl->checkCondition(condition, "condition", location))
    return false;
  auto branch =
      scf::IfOp::create(impl->builder, impl->at(location), TypeRange(),
                        impl->get(condition), /*addThenBlock=*/true,
                        /*addElseBlock=*/false);
  impl->frames.push_back({Frame::Then, branch});
  impl->builder.setInsertionPointToEnd(branch.thenBlock());
  return true;
}

bool KernelBuilder::beginElse(const Values &values,
                              const SourceLocation &location) {
  if (!impl->closing(Frame::Then, "the first half of a branch", location) ||
      !checkCarried(*impl, values, "values of a branch", location))
    return false;
  scf::YieldOp::create(impl->builder, impl->at(location), impl->getAll(values));
  auto branch = cast<scf::IfOp>(impl->frames.back().op);
  impl->frames.back().kind = Frame::Else;
  impl->builder.setInsertionPointToEnd(&branch.getElseRegion().emplaceBlock());
  return true;
}

/// The types of a branch's results: those of the first half's values, which
/// become states with a sink where `values`, those of the second half, are.
static SmallVector<Type> joinBranches(Impl &impl, scf::IfOp branch,
                                      const KernelBuilder::Values &values) {
  Operation *yield = branch.thenBlock()->getTerminator();
  OpBuilder::InsertionGuard guard(impl.builder);
  impl.builder.setInsertionPoint(yield);
  for (auto [operand, value] : llvm::zip(yield->getOpOperands(), values))
    if (Type joined =
            Impl::joinTypes(operand.get().getType(), impl.get(value).getType()))
      operand.set(impl.widen(operand.get(), joined, yield->getLoc()));
  return llvm::to_vector(yield->getOperandTypes());
}

bool KernelBuilder::endIf(const Values &values, Values &results,
                          const SourceLocation &location) {
  if (!impl->closing({Frame::Then, Frame::Else}, "a branch", location) ||
      !checkCarried(*impl, values, "values of a branch", location))
    return false;
  auto branch = cast<scf::IfOp>(impl->frames.back().op);
  SmallVector<Type> expected;
  if (impl->frames.back().kind == Frame::Else)
    expected = joinBranches(*impl, branch, values);
  if (!checkTypes(*impl, values, expected, "values of a branch", location))
    return false;
  buildYield(*impl, values, expected, impl->at(location));
  impl->frames.pop_back();
  impl->builder.setInsertionPointAfter(branch);
  results.clear();
  if (values.empty())
    return true;
  // The types of the results are known only now.
  auto typed = scf::IfOp::create(impl->builder, branch.getLoc(), expected,
                                 branch.getCondition(), /*addThenBlock=*/false,
                                 /*addElseBlock=*/false);
  typed.getThenRegion().takeBody(branch.getThenRegion());
  typed.getElseRegion().takeBody(branch.getElseRegion());
  branch.erase();
  results = impl->wrapAll(typed.getResults());
  return true;
}
